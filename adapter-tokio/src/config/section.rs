//! A table of settings, declared once: its fields, its keys, its variables and what they allow.

use super::error::SettingError;
use super::raw::Raw;
use super::value::Value;

/// A setting, or a table of them.
pub(super) trait Node: Sized {
    /// Reads it from a file; `expected` is what is allowed.
    fn read(raw: Raw, expected: &'static str) -> Result<Self, SettingError>;

    fn write(&self) -> Raw;

    /// Sets what is at `path`, relative to it, or itself if that is empty.
    fn assign(
        slot: &mut Option<Self>,
        path: &str,
        raw: Raw,
        expected: &'static str,
    ) -> Result<(), SettingError>;

    /// Each setting at or below `path`, and what it allows.
    fn leaves(path: &str, expected: &'static str, out: &mut Vec<Leaf>);
}

/// A setting's path, and what it allows.
#[derive(Clone, Debug)]
pub(super) struct Leaf {
    pub(super) path: String,
    pub(super) expected: &'static str,
}

impl<V: Value> Node for V {
    fn read(raw: Raw, expected: &'static str) -> Result<Self, SettingError> {
        let value = match &raw {
            Raw::Number(text) | Raw::Text(text) => V::parse(text.trim()),
            Raw::Table(entries) => V::from_table(entries),
            Raw::Bool(_) | Raw::List | Raw::Null => Err(""),
        };
        value.map_err(|complaint| refusal(complaint, expected).got_value(raw.shown()))
    }

    fn write(&self) -> Raw {
        self.print()
    }

    fn assign(
        slot: &mut Option<Self>,
        _: &str,
        raw: Raw,
        expected: &'static str,
    ) -> Result<(), SettingError> {
        *slot = Some(Self::read(raw, expected)?);
        Ok(())
    }

    fn leaves(path: &str, expected: &'static str, out: &mut Vec<Leaf>) {
        out.push(Leaf { path: path.to_owned(), expected });
    }
}

/// That something else is expected, after what is to be complained of, if that is not all.
pub(super) fn refusal(complaint: &str, expected: &str) -> SettingError {
    match complaint {
        "" => SettingError::new(format!("must be {expected}")),
        complaint => SettingError::new(format!("{complaint}: must be {expected}")),
    }
}

pub(super) fn unknown(known: &[&str]) -> SettingError {
    SettingError::new(format!("unknown, must be one of {}", known.join(", ")))
}

pub(super) fn joined(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

macro_rules! section {
    (
        $(#[$meta:meta])*
        pub struct $Section:ident {
            $($(#[$doc:meta])* $key:ident: $Kind:ty = $expected:literal,)*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct $Section {
            $($(#[$doc])* pub $key: Option<$Kind>,)*
        }

        impl $Section {
            const KEYS: &'static [&'static str] = &[$(stringify!($key)),*];

            /// That what `key` says, `got`, is not what it allows.
            #[allow(dead_code, reason = "not every section checks more than the core does")]
            fn refused(key: &str, got: &impl $crate::config::section::Node) -> SettingError {
                let expected = match key {
                    $(stringify!($key) => $expected,)*
                    _ => "something else",
                };
                let got = got.write().shown();
                $crate::config::section::refusal("", expected).at(key).got_value(got)
            }
        }

        impl $crate::config::section::Node for $Section {
            fn read(
                raw: $crate::config::raw::Raw,
                _: &'static str,
            ) -> Result<Self, SettingError> {
                use $crate::config::raw::Raw;
                let Raw::Table(entries) = raw else {
                    return Err(SettingError::new("must be a table").got_value(raw.shown()));
                };
                let mut section = Self::default();
                let mut seen = Vec::new();
                for (key, value) in entries {
                    if seen.contains(&key) {
                        return Err(SettingError::new("must not be given twice").at(&key));
                    }
                    match key.as_str() {
                        $(stringify!($key) if value == Raw::Null => {})*
                        $(stringify!($key) => {
                            let value = $crate::config::section::Node::read(value, $expected);
                            section.$key = Some(value.map_err(|error| error.within(&key))?);
                        })*
                        key => return Err($crate::config::section::unknown(Self::KEYS).at(key)),
                    }
                    seen.push(key);
                }
                Ok(section)
            }

            fn write(&self) -> $crate::config::raw::Raw {
                let mut entries = Vec::new();
                $(if let Some(value) = &self.$key {
                    let value = $crate::config::section::Node::write(value);
                    entries.push((stringify!($key).to_owned(), value));
                })*
                $crate::config::raw::Raw::Table(entries)
            }

            fn assign(
                slot: &mut Option<Self>,
                path: &str,
                raw: $crate::config::raw::Raw,
                _: &'static str,
            ) -> Result<(), SettingError> {
                let section = slot.get_or_insert_default();
                let (key, rest) = path.split_once('.').unwrap_or((path, ""));
                match key {
                    $(stringify!($key) => $crate::config::section::Node::assign(
                        &mut section.$key, rest, raw, $expected,
                    ),)*
                    _ => Err($crate::config::section::unknown(Self::KEYS)),
                }
            }

            fn leaves(
                path: &str,
                _: &'static str,
                out: &mut Vec<$crate::config::section::Leaf>,
            ) {
                $({
                    let path = $crate::config::section::joined(path, stringify!($key));
                    <$Kind as $crate::config::section::Node>::leaves(&path, $expected, out);
                })*
            }
        }

        impl<'de> serde::Deserialize<'de> for $Section {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let raw = $crate::config::raw::Raw::deserialize(deserializer)?;
                $crate::config::section::Node::read(raw, "").map_err(serde::de::Error::custom)
            }
        }

        impl serde::Serialize for $Section {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                $crate::config::section::Node::write(self).serialize(serializer)
            }
        }
    };
}

pub(super) use section;
