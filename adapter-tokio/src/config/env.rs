//! Settings from environment variables.

use std::ffi::{OsStr, OsString};

use super::error::SettingError;
use super::raw::Raw;
use super::retry::RetrySection;
use super::section::{Leaf, Node, joined, refusal, unknown};
use super::upstream::UpstreamConfig;

impl RetrySection {
    /// The same with what the variables `<prefix>_RETRY_…` say instead.
    ///
    /// ```
    /// use holdoff_tokio::Policy;
    /// use holdoff_tokio::config::RetrySection;
    ///
    /// let vars = [("LLM_RETRY_JITTER", "0.25"), ("LLM_RETRY_DEADLINE", "20s"), ("HOME", "/")];
    /// let vars = vars.map(|(name, value)| (name.into(), value.into()));
    /// let policy = RetrySection::of(&Policy::LLM).overridden_by("LLM", vars).unwrap().build();
    /// assert_eq!(policy.unwrap().deadline().unwrap().as_secs(), 20);
    ///
    /// let typo = [("LLM_RETRY_JITER".into(), "0.25".into())];
    /// let error = RetrySection::default().overridden_by("LLM", typo).unwrap_err();
    /// assert!(error.to_string().starts_with("LLM_RETRY_JITER: unknown, must be one of LLM_"));
    /// ```
    ///
    /// # Errors
    /// The variable, or the key of what was there before; what it says and what is allowed. Also if
    /// it is empty, is not Unicode, or begins like one of these and is none.
    pub fn overridden_by(
        self,
        prefix: &str,
        vars: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Result<Self, SettingError> {
        let names = Names::new::<Self>(prefix, "retry");
        names.overridden(self, vars, |retry| retry.build().map(drop))
    }

    /// [`overridden_by`](Self::overridden_by) the variables of this process.
    ///
    /// ```
    /// use holdoff_tokio::Policy;
    /// use holdoff_tokio::config::RetrySection;
    ///
    /// // Nothing set, nothing changed.
    /// let retry = RetrySection::of(&Policy::LLM).overridden_by_env("UNSET").unwrap();
    /// assert_eq!(retry.build().unwrap(), Policy::LLM);
    /// ```
    ///
    /// # Errors
    /// As for [`overridden_by`](Self::overridden_by).
    pub fn overridden_by_env(self, prefix: &str) -> Result<Self, SettingError> {
        self.overridden_by(prefix, std::env::vars_os())
    }
}

impl UpstreamConfig {
    /// The same with what the variables `<prefix>_RETRY_…`, `<prefix>_RATE`, `<prefix>_BURST`,
    /// `<prefix>_MAX_WAITING`, `<prefix>_BREAKER_…` and `<prefix>_BUDGET_…` say instead.
    ///
    /// A variable for what has no table yet adds it.
    ///
    /// ```
    /// use holdoff_tokio::config::UpstreamConfig;
    ///
    /// let vars = [("SEARCH_RATE", "10/s"), ("SEARCH_BURST", "20")];
    /// let vars = vars.map(|(name, value)| (name.into(), value.into()));
    /// let search = UpstreamConfig::default().overridden_by("SEARCH", vars).unwrap();
    /// assert_eq!(search.build().unwrap().limiter().unwrap().quota().burst(), 20);
    /// ```
    ///
    /// # Errors
    /// As for [`RetrySection::overridden_by`].
    pub fn overridden_by(
        self,
        prefix: &str,
        vars: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Result<Self, SettingError> {
        let names = Names::new::<Self>(prefix, "");
        names.overridden(self, vars, |upstream| upstream.build().map(drop))
    }

    /// [`overridden_by`](Self::overridden_by) the variables of this process.
    ///
    /// ```
    /// use holdoff_tokio::config::UpstreamConfig;
    ///
    /// let unset = UpstreamConfig::default().overridden_by_env("UNSET").unwrap();
    /// assert_eq!(unset, UpstreamConfig::default());
    /// ```
    ///
    /// # Errors
    /// As for [`RetrySection::overridden_by`].
    pub fn overridden_by_env(self, prefix: &str) -> Result<Self, SettingError> {
        self.overridden_by(prefix, std::env::vars_os())
    }
}

/// Which variable sets what.
struct Names {
    known: Vec<Name>,
    /// Nothing else may begin so.
    reserved: Vec<String>,
}

struct Name {
    variable: String,
    setting: Leaf,
}

impl Names {
    /// Of a `T` that is the table `root`, or the whole if that is empty.
    fn new<T: Node>(prefix: &str, root: &str) -> Self {
        // `LLM_` is meant to be `LLM`, and must not lead to variables that nobody sets.
        let prefix = match prefix.trim_end_matches('_') {
            "" => String::new(),
            prefix => format!("{prefix}_"),
        };
        let name = |path: &str| {
            let path = path.strip_prefix("limiter.").unwrap_or(path);
            format!("{prefix}{}", path.replace('.', "_").to_uppercase())
        };
        let mut settings = Vec::new();
        T::leaves("", "", &mut settings);
        let known = settings.into_iter().map(|setting| {
            let variable = name(&joined(root, &setting.path));
            Name { variable, setting }
        });
        let whole = ["retry", "limiter", "breaker", "budget"];
        let tables = if root.is_empty() { &whole[..] } else { &[root][..] };
        let reserved = tables.iter().map(|table| name(table) + "_");
        Self { known: known.collect(), reserved: reserved.collect() }
    }

    fn overridden<T: Node>(
        &self,
        config: T,
        vars: impl IntoIterator<Item = (OsString, OsString)>,
        check: impl FnOnce(&T) -> Result<(), SettingError>,
    ) -> Result<T, SettingError> {
        let mut vars: Vec<_> =
            vars.into_iter().filter(|(variable, _)| self.concerns(variable)).collect();
        vars.sort(); // The same mistake is named each time.
        let mut slot = Some(config);
        let mut origins = Vec::new();
        for (variable, value) in vars {
            let variable = variable.to_string_lossy();
            let Some(Name { setting, .. }) = self.find(&variable) else {
                let known: Vec<_> = self.known.iter().map(|name| name.variable.as_str()).collect();
                return Err(unknown(&known).at_variable(&variable));
            };
            let got = Raw::Text(value.to_string_lossy().into_owned());
            let complaint = match value.to_str() {
                None => "not Unicode",
                Some(text) if text.trim().is_empty() => "empty, unset it for the default",
                Some(_) => "",
            };
            let shown = got.shown();
            if !complaint.is_empty() {
                return Err(refusal(complaint, setting.expected)
                    .at_variable(&variable)
                    .got_value(shown));
            }
            T::assign(&mut slot, &setting.path, got, setting.expected)
                .map_err(|error| error.at_variable(&variable))?;
            origins.push((setting.path.as_str(), variable.into_owned(), shown));
        }
        // There since the beginning.
        let Some(config) = slot else { return Err(SettingError::new("missing")) };
        let origin = |key: &str| {
            let (_, variable, shown) = origins.iter().find(|(path, ..)| *path == key)?;
            Some((variable.clone(), shown.clone()))
        };
        check(&config).map_err(|error| error.from(origin))?;
        Ok(config)
    }

    fn find(&self, variable: &str) -> Option<&Name> {
        self.known.iter().find(|name| name.variable == variable)
    }

    fn concerns(&self, variable: &OsStr) -> bool {
        let variable = variable.to_string_lossy();
        let is_reserved = |start: &String| variable.starts_with(start.as_str());
        self.find(&variable).is_some() || self.reserved.iter().any(is_reserved)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documentation_has_every_key() {
        let complete = include_str!("complete.toml");
        for Name { variable, setting } in Names::new::<UpstreamConfig>("", "").known {
            let key = setting.path.rsplit('.').next().expect("a path has an end");
            let (line, comment) = (format!("\n{key} = "), format!("\n# {key} = "));
            assert!(complete.contains(&line) || complete.contains(&comment), "{key}, {variable}");
        }
    }
}
