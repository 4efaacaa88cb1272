//! Machine-readable error codes in the bodies of failed answers.

use core::fmt;
use std::sync::Arc;

use holdoff::{Failure, Hint, Sent};
use serde::Deserialize;
use serde_json::Value;

/// What a JSON error body says, in the words that are meant for machines.
///
/// `{"error": {"code": "insufficient_quota", "type": "…", "message": "…"}}`, as OpenAI, Anthropic
/// and those who follow them send it. Prose is never looked at.
///
/// ```
/// use holdoff_reqwest::{Class, ErrorCode};
///
/// let code = ErrorCode::new(429, Some("insufficient_quota"), None);
/// assert_eq!(code.failure().unwrap().class, Class::Quota);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct ErrorCode<'a> {
    /// The status of the answer; 200 for an error inside of a stream.
    pub status: u16,
    /// `error.code`, if it is a string.
    pub code: Option<&'a str>,
    /// `error.type`, if it is a string.
    pub kind: Option<&'a str>,
}

impl<'a> ErrorCode<'a> {
    /// The code of an answer.
    #[must_use]
    pub const fn new(status: u16, code: Option<&'a str>, kind: Option<&'a str>) -> Self {
        Self { status, code, kind }
    }

    /// What is known of it; `None` leaves it to the status. What was refused surely was not
    /// processed.
    ///
    /// | code or type | failure |
    /// |---|---|
    /// | `insufficient_quota`, `billing_error`, `billing_hard_limit_reached` | quota |
    /// | `overloaded_error`, `engine_overloaded`, `server_is_overloaded` | transient, refused |
    #[must_use]
    pub fn failure(&self) -> Option<Failure> {
        self.words().find_map(|word| match word {
            "insufficient_quota" | "billing_error" | "billing_hard_limit_reached" => {
                Some(Failure::quota())
            }
            "overloaded_error" | "engine_overloaded" | "server_is_overloaded" => {
                Some(Failure::transient().with_sent(Sent::Refused))
            }
            _ => None,
        })
    }

    /// What an error inside of a stream means, which has no status to go by.
    pub(crate) fn failure_in_stream(&self) -> Failure {
        let by_type = || {
            self.words().find_map(|word| match word {
                "rate_limit_error" | "rate_limit_exceeded" => Some(Failure::throttled()),
                "api_error" | "server_error" | "timeout_error" => Some(Failure::transient()),
                _ => None,
            })
        };
        self.failure().or_else(by_type).unwrap_or(Failure::permanent())
    }

    fn words(&self) -> impl Iterator<Item = &'a str> {
        [self.code, self.kind].into_iter().flatten()
    }
}

/// What error codes mean: the caller's word, then ours.
#[derive(Clone, Default)]
pub(crate) struct Codes(Option<Arc<Meaning>>);

type Meaning = dyn Fn(&ErrorCode<'_>) -> Option<Failure> + Send + Sync;

impl Codes {
    pub(crate) fn new(
        meaning: impl Fn(&ErrorCode<'_>) -> Option<Failure> + Send + Sync + 'static,
    ) -> Self {
        Self(Some(Arc::new(meaning)))
    }

    /// What the code in `body` makes of `failure`, which the status and the headers say it is.
    pub(crate) fn refine(&self, failure: Failure, status: u16, body: &[u8]) -> Failure {
        let Some(error) = ErrorBody::read(body) else { return failure };
        let code = error.code(status);
        let meant = self.0.as_ref().and_then(|meaning| meaning(&code));
        match meant.or_else(|| code.failure()) {
            Some(meant) if meant.hint == Hint::Absent => meant.with_hint(failure.hint),
            Some(meant) => meant,
            None => failure,
        }
    }

    /// What an error inside of a stream means; `None` if `data` is none.
    pub(crate) fn in_stream(&self, data: &[u8]) -> Option<Failure> {
        let error = ErrorBody::read(data)?;
        let code = error.code(200);
        let meant = self.0.as_ref().and_then(|meaning| meaning(&code));
        Some(meant.unwrap_or_else(|| code.failure_in_stream()))
    }
}

impl fmt::Debug for Codes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Codes(own)" } else { "Codes(default)" })
    }
}

struct ErrorBody {
    code: Value,
    kind: Value,
}

impl ErrorBody {
    fn read(body: &[u8]) -> Option<Self> {
        #[derive(Deserialize)]
        struct Outer {
            error: Inner,
        }

        #[derive(Deserialize)]
        struct Inner {
            #[serde(default)]
            code: Value,
            #[serde(default, rename = "type")]
            kind: Value,
        }

        let Outer { error: Inner { code, kind } } = serde_json::from_slice(body).ok()?;
        Some(Self { code, kind })
    }

    fn code(&self, status: u16) -> ErrorCode<'_> {
        ErrorCode::new(status, self.code.as_str(), self.kind.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdoff::Class;

    #[test]
    fn codes_decide_and_prose_does_not() {
        let codes = Codes::default();
        for (body, class) in [
            (r#"{"error":{"code":"insufficient_quota","message":"x"}}"#, Class::Quota),
            (r#"{"error":{"type":"insufficient_quota","code":null}}"#, Class::Quota),
            (r#"{"type":"error","error":{"type":"overloaded_error"}}"#, Class::Transient),
            (
                r#"{"error":{"type":"server_error","code":"server_is_overloaded"}}"#,
                Class::Transient,
            ),
            (r#"{"error":{"message":"insufficient_quota"}}"#, Class::Throttled),
            (r#"{"error":{"code":429,"status":"RESOURCE_EXHAUSTED"}}"#, Class::Throttled),
            (r#"{"error":"insufficient_quota"}"#, Class::Throttled),
            (r#"{"error":{"code":["insufficient_quota"]}}"#, Class::Throttled),
            (r#"[1,2"#, Class::Throttled),
            ("", Class::Throttled),
        ] {
            let refined = codes.refine(Failure::throttled(), 429, body.as_bytes());
            assert_eq!(refined.class, class, "{body}");
        }
        let deep = "[".repeat(100_000);
        assert_eq!(
            codes.refine(Failure::throttled(), 429, deep.as_bytes()).class,
            Class::Throttled
        );
    }

    #[test]
    fn the_callers_word_goes_first_and_hints_are_kept() {
        let codes = Codes::new(|code| match code.code {
            Some("tenant_suspended") => Some(Failure::permanent()),
            Some("insufficient_quota") => Some(Failure::throttled()),
            _ => None,
        });
        let hint = Hint::after(core::time::Duration::from_secs(5));
        let throttled = Failure::throttled().with_hint(hint);
        for (body, expected) in [
            (r#"{"error":{"code":"tenant_suspended"}}"#, Failure::permanent().with_hint(hint)),
            (r#"{"error":{"code":"insufficient_quota"}}"#, throttled),
            (r#"{"error":{"type":"billing_error"}}"#, Failure::quota().with_hint(hint)),
        ] {
            assert_eq!(codes.refine(throttled, 429, body.as_bytes()), expected, "{body}");
        }
    }
}
