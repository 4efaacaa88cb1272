//! What a file says, before it means anything: so that whatever is wrong with it can be named.

use core::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};

/// A value of any self-describing format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Raw {
    Bool(bool),
    List,
    Null,
    /// Its shortest decimal form: what was written, for all that a file may hold.
    Number(String),
    Table(Vec<(String, Self)>),
    Text(String),
}

impl Raw {
    /// As it is shown in a message: on one line and not for pages.
    pub(super) fn shown(&self) -> String {
        const MOST: usize = 60;
        match self {
            Self::Bool(value) => value.to_string(),
            Self::List => "a list".into(),
            Self::Null => "null".into(),
            Self::Number(number) => number.chars().take(MOST).collect(),
            Self::Table(_) => "a table".into(),
            Self::Text(text) if text.chars().count() > MOST => {
                format!("{:?} and more", text.chars().take(MOST).collect::<String>())
            }
            Self::Text(text) => format!("{text:?}"),
        }
    }
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyValue)
    }
}

struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
    type Value = Raw;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a setting")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Raw, E> {
        Ok(Raw::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Raw, E> {
        Ok(Raw::Number(value.to_string()))
    }

    fn visit_i128<E>(self, value: i128) -> Result<Raw, E> {
        Ok(Raw::Number(value.to_string()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Raw, E> {
        Ok(Raw::Number(value.to_string()))
    }

    fn visit_u128<E>(self, value: u128) -> Result<Raw, E> {
        Ok(Raw::Number(value.to_string()))
    }

    // Not by way of f64, where 0.1 would become 0.10000000149.
    fn visit_f32<E>(self, value: f32) -> Result<Raw, E> {
        Ok(Raw::Number(value.to_string()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Raw, E> {
        Ok(Raw::Number(value.to_string()))
    }

    fn visit_str<E>(self, value: &str) -> Result<Raw, E> {
        Ok(Raw::Text(value.to_owned()))
    }

    fn visit_none<E>(self) -> Result<Raw, E> {
        Ok(Raw::Null)
    }

    fn visit_unit<E>(self) -> Result<Raw, E> {
        Ok(Raw::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Raw, D::Error> {
        Raw::deserialize(deserializer)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, inner: D) -> Result<Raw, D::Error> {
        Raw::deserialize(inner)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Raw, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Raw::List)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Raw, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        Ok(Raw::Table(entries))
    }
}

impl Serialize for Raw {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Bool(value) => serializer.serialize_bool(*value),
            Self::List | Self::Null => serializer.serialize_unit(),
            Self::Number(number) => match (number.parse(), number.parse()) {
                (Ok(whole), _) => serializer.serialize_i64(whole),
                (_, Ok(decimal)) => serializer.serialize_f64(decimal),
                _ => serializer.serialize_str(number),
            },
            Self::Table(entries) => {
                let mut map = serializer.serialize_map(Some(entries.len()))?;
                for (key, value) in entries {
                    map.serialize_entry(key, value)?;
                }
                map.end()
            }
            Self::Text(text) => serializer.serialize_str(text),
        }
    }
}
