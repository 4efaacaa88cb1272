//! What is wrong with a setting.

use core::error::Error;
use core::fmt;
use std::borrow::Cow;

use holdoff::ConfigError;

/// A setting that cannot be used: its key or variable, what it says, and what is allowed.
///
/// ```
/// use holdoff_tokio::config::UpstreamConfig;
///
/// let config: UpstreamConfig = toml::from_str("breaker = { open_period = '0s' }")?;
/// let error = config.build().unwrap_err();
/// assert_eq!((error.key(), error.got()), ("breaker.open_period", Some("\"0s\"")));
/// assert_eq!(
///     error.to_string(),
///     "breaker.open_period: open period must be above zero and at most the maximum open period, \
///      which must be at most 49 days, got \"0s\" (breaker.max_open_period: \"5m\")"
/// );
/// # Ok::<(), toml::de::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingError {
    place: Place,
    /// Other settings without which this one would do.
    others: Vec<Place>,
    reason: Cow<'static, str>,
    cause: Option<ConfigError>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Place {
    key: String,
    is_variable: bool,
    got: Option<String>,
}

impl SettingError {
    /// The key, as a path such as `breaker.open_period`, or the environment variable.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.place.key
    }

    /// What it says, text in quotation marks; `None` if it is missing.
    #[must_use]
    pub fn got(&self) -> Option<&str> {
        self.place.got.as_deref()
    }

    /// What is allowed.
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// The same error, its keys being below `table`: where the file keeps the configuration. A
    /// variable stays as it is.
    ///
    /// ```
    /// use holdoff_tokio::config::RetrySection;
    ///
    /// let mut retry = RetrySection::default();
    /// retry.max_attempts = Some(0);
    /// let error = retry.build().unwrap_err().within("search.retry");
    /// assert_eq!(
    ///     error.to_string(),
    ///     "search.retry.max_attempts: max_attempts counts the first call and must be at least 1, \
    ///      got 0"
    /// );
    /// ```
    #[must_use]
    pub fn within(mut self, table: &str) -> Self {
        self.each_place(|place| {
            place.key = match place.key.as_str() {
                _ if place.is_variable => return,
                "" => table.to_owned(),
                key => format!("{table}.{key}"),
            };
        });
        self
    }

    pub(super) fn new(reason: impl Into<Cow<'static, str>>) -> Self {
        let reason = reason.into();
        Self { place: Place::default(), others: Vec::new(), reason, cause: None }
    }

    pub(super) fn of(cause: ConfigError) -> Self {
        Self { cause: Some(cause), ..Self::new(cause.message()) }
    }

    pub(super) fn got_value(mut self, got: String) -> Self {
        self.place.got = Some(got);
        self
    }

    pub(super) fn at(mut self, key: &str) -> Self {
        self.place.key = key.to_owned();
        self
    }

    pub(super) fn at_variable(mut self, variable: &str) -> Self {
        self.place.is_variable = true;
        self.at(variable)
    }

    pub(super) fn and(mut self, key: &str, got: String) -> Self {
        self.others.push(Place { key: key.to_owned(), is_variable: false, got: Some(got) });
        self
    }

    /// Names where each setting came from, if `origin` knows: the variable, and its value.
    pub(super) fn from(mut self, origin: impl Fn(&str) -> Option<(String, String)>) -> Self {
        self.each_place(|place| {
            if let Some((key, got)) = origin(&place.key) {
                *place = Place { key, is_variable: true, got: Some(got) };
            }
        });
        self
    }

    fn each_place(&mut self, change: impl Fn(&mut Place)) {
        core::iter::once(&mut self.place).chain(&mut self.others).for_each(change);
    }
}

impl fmt::Display for SettingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Place { key, got, .. } = &self.place;
        write!(f, "{key}: {}", self.reason)?;
        if let Some(got) = got {
            write!(f, ", got {got}")?;
        }
        for Place { key, got, .. } in &self.others {
            write!(f, " ({key}: {})", got.as_deref().unwrap_or("missing"))?;
        }
        Ok(())
    }
}

impl Error for SettingError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.cause.as_ref().map(|cause| cause as _)
    }
}
