//! Upstreams and policies from files and variables: what is read, what is refused and how it says
//! so, and that what is printed means the same.

mod complete;
mod env;
mod published;
mod round_trip;
mod values;

use std::ffi::OsString;

use holdoff_tokio::config::{SettingError, UpstreamConfig};

/// What a TOML file says, or what is wrong with it.
fn read(toml: &str) -> Result<UpstreamConfig, String> {
    toml::from_str(toml).map_err(|error: toml::de::Error| error.message().to_owned())
}

/// What is wrong with a TOML file, whether it is found on reading or on building.
fn wrong(toml: &str) -> String {
    match read(toml).map(|config| config.build()) {
        Ok(Ok(_)) => format!("nothing is wrong with {toml}"),
        Ok(Err(error)) => error.to_string(),
        Err(error) => error,
    }
}

fn vars(vars: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
    vars.iter().map(|&(name, value)| (name.into(), value.into())).collect()
}

fn from_vars(set: &[(&str, &str)]) -> Result<UpstreamConfig, SettingError> {
    UpstreamConfig::default().overridden_by("LLM", vars(set))
}
