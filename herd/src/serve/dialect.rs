//! What the providers' answers look like.

use core::time::Duration;

use serde_json::{Value, json};

use super::limits::Level;
use super::plan::Hint;
use super::scenario::HintForm;
use super::text;

/// The words of an answer, of which a stream sends one at a time.
const WORDS: [&str; 6] = ["I", " am", " not", " a", " real", " model."];
const INPUT_TOKENS: u32 = 9;
const OUTPUT_TOKENS: u32 = 6;

/// Whose answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    Anthropic,
    OpenAi,
    /// Nobody's in particular: both providers' headers.
    Plain,
}

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Problem {
    /// The body is not what the endpoint takes.
    Invalid(&'static str),
    /// The bucket is empty.
    RateLimit,
    /// The money is spent.
    Quota,
    /// The scenario says so, or the way of asking.
    Status(u16),
}

pub(super) type Headers = Vec<(&'static str, String)>;

impl Problem {
    pub(super) const fn status(self) -> u16 {
        match self {
            Self::Invalid(_) => 400,
            Self::Quota | Self::RateLimit => 429,
            Self::Status(status) => status,
        }
    }
}

impl Dialect {
    /// The name of the header with the request's id.
    pub(super) const fn request_id(self) -> &'static str {
        match self {
            Self::Anthropic => "request-id",
            Self::OpenAi | Self::Plain => "x-request-id",
        }
    }

    /// The body of an error.
    pub(super) fn error(self, problem: Problem, request_id: &str) -> Value {
        let message = message(self, problem);
        match self {
            Self::Anthropic => json!({
                "type": "error",
                "error": { "type": anthropic_type(problem), "message": message },
                "request_id": request_id,
            }),
            Self::OpenAi => {
                let (kind, code) = openai_type(problem);
                json!({
                    "error": { "message": message, "type": kind, "param": null, "code": code },
                })
            }
            Self::Plain => json!({ "error": message, "status": problem.status() }),
        }
    }

    /// What the provider says of the limit with every answer that the limit was asked for.
    pub(super) fn rate_headers(self, level: &Level, wall: Duration) -> Headers {
        let Level { limit, remaining, full_in, window, .. } = *level;
        let reset = text::seconds(full_in);
        let mut headers = vec![
            ("ratelimit", format!("\"requests\";r={remaining};t={reset}")),
            ("ratelimit-policy", format!("\"requests\";q={limit};w={}", text::seconds(window))),
        ];
        if self != Self::OpenAi {
            headers.extend([
                ("anthropic-ratelimit-requests-limit", limit.to_string()),
                ("anthropic-ratelimit-requests-remaining", remaining.to_string()),
                ("anthropic-ratelimit-requests-reset", text::rfc3339(wall.saturating_add(full_in))),
            ]);
        }
        if self != Self::Anthropic {
            headers.extend([
                ("x-ratelimit-limit-requests", limit.to_string()),
                ("x-ratelimit-remaining-requests", remaining.to_string()),
                ("x-ratelimit-reset-requests", text::go_duration(full_in)),
            ]);
        }
        headers
    }

    /// The whole answer of a model.
    pub(super) fn completion(self, model: &str, number: u64, wall: Duration) -> Value {
        let text = WORDS.concat();
        match self {
            Self::Anthropic => json!({
                "id": format!("msg_{number:024}"),
                "type": "message",
                "role": "assistant",
                "model": model,
                "content": [{ "type": "text", "text": text }],
                "stop_reason": "end_turn",
                "stop_sequence": null,
                "usage": { "input_tokens": INPUT_TOKENS, "output_tokens": OUTPUT_TOKENS },
            }),
            Self::OpenAi | Self::Plain => json!({
                "id": format!("chatcmpl-{number:024}"),
                "object": "chat.completion",
                "created": wall.as_secs(),
                "model": model,
                "choices": [{
                    "index": 0,
                    "message": { "role": "assistant", "content": text, "refusal": null },
                    "logprobs": null,
                    "finish_reason": "stop",
                }],
                "usage": {
                    "prompt_tokens": INPUT_TOKENS,
                    "completion_tokens": OUTPUT_TOKENS,
                    "total_tokens": INPUT_TOKENS + OUTPUT_TOKENS,
                },
            }),
        }
    }

    /// The same as server-sent events, each as it is on the wire.
    pub(super) fn events(self, model: &str, number: u64, wall: Duration) -> Vec<String> {
        match self {
            Self::Anthropic => anthropic_events(model, number),
            Self::OpenAi | Self::Plain => openai_events(model, number, wall),
        }
    }

    /// The event that ends a stream whose model is overloaded.
    pub(super) fn overloaded_event(self, request_id: &str) -> String {
        match self {
            Self::Anthropic => event("error", &self.error(Problem::Status(529), request_id)),
            Self::OpenAi | Self::Plain => data(&Self::OpenAi.error(Problem::Status(503), "")),
        }
    }
}

/// When to come back: `wait`, unless the plan says otherwise.
pub(super) fn hint_headers(hint: Hint, wait: Option<Duration>, wall: Duration) -> Headers {
    let Some(wait) = hint.retry_after.or(wait) else {
        return Headers::new();
    };
    match hint.form {
        HintForm::HttpDate => vec![("retry-after", text::http_date(wall.saturating_add(wait)))],
        HintForm::Milliseconds => vec![("retry-after-ms", text::milliseconds(wait).to_string())],
        HintForm::Omitted => Headers::new(),
        HintForm::Seconds => vec![("retry-after", text::seconds(wait).max(1).to_string())],
    }
}

fn message(dialect: Dialect, problem: Problem) -> String {
    match (problem, dialect) {
        (Problem::Invalid(text), _) => text.to_owned(),
        (Problem::RateLimit, _) => "Too many requests: the rate limit is reached.".to_owned(),
        (Problem::Quota, Dialect::OpenAi) => {
            "The quota is used up: see plan and billing.".to_owned()
        }
        (Problem::Quota, _) => "The spending limit of this organization is reached.".to_owned(),
        (Problem::Status(529), _) => "Overloaded".to_owned(),
        (Problem::Status(status), _) => format!("The service answers {status}."),
    }
}

const fn anthropic_type(problem: Problem) -> &'static str {
    match problem.status() {
        401 => "authentication_error",
        402 => "billing_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        504 => "timeout_error",
        529 => "overloaded_error",
        500.. => "api_error",
        _ => "invalid_request_error",
    }
}

const fn openai_type(problem: Problem) -> (&'static str, Option<&'static str>) {
    match (problem, problem.status()) {
        (Problem::Quota, _) => ("insufficient_quota", Some("insufficient_quota")),
        (_, 429) => ("requests", Some("rate_limit_exceeded")),
        (_, 401) => ("invalid_request_error", Some("invalid_api_key")),
        (_, 503 | 529) => ("server_error", Some("server_is_overloaded")),
        (_, 500..) => ("server_error", None),
        _ => ("invalid_request_error", None),
    }
}

fn anthropic_events(model: &str, number: u64) -> Vec<String> {
    let start = json!({
        "type": "message_start",
        "message": {
            "id": format!("msg_{number:024}"),
            "type": "message",
            "role": "assistant",
            "model": model,
            "content": [],
            "stop_reason": null,
            "stop_sequence": null,
            "usage": { "input_tokens": INPUT_TOKENS, "output_tokens": 1 },
        },
    });
    let block = json!({
        "type": "content_block_start",
        "index": 0,
        "content_block": { "type": "text", "text": "" },
    });
    let delta = json!({
        "type": "message_delta",
        "delta": { "stop_reason": "end_turn", "stop_sequence": null },
        "usage": { "output_tokens": OUTPUT_TOKENS },
    });
    let mut events = vec![
        event("message_start", &start),
        event("content_block_start", &block),
        event("ping", &json!({ "type": "ping" })),
    ];
    events.extend(WORDS.map(|word| {
        let delta = json!({ "type": "text_delta", "text": word });
        let block = json!({ "type": "content_block_delta", "index": 0, "delta": delta });
        event("content_block_delta", &block)
    }));
    events.extend([
        event("content_block_stop", &json!({ "type": "content_block_stop", "index": 0 })),
        event("message_delta", &delta),
        event("message_stop", &json!({ "type": "message_stop" })),
    ]);
    events
}

fn openai_events(model: &str, number: u64, wall: Duration) -> Vec<String> {
    let chunk = |delta: Value, finish_reason: Option<&str>| {
        data(&json!({
            "id": format!("chatcmpl-{number:024}"),
            "object": "chat.completion.chunk",
            "created": wall.as_secs(),
            "model": model,
            "choices": [{
                "index": 0,
                "delta": delta,
                "logprobs": null,
                "finish_reason": finish_reason,
            }],
        }))
    };
    let mut events = vec![chunk(json!({ "role": "assistant", "content": "" }), None)];
    events.extend(WORDS.map(|word| chunk(json!({ "content": word }), None)));
    events.extend([chunk(json!({}), Some("stop")), "data: [DONE]\n\n".to_owned()]);
    events
}

fn event(name: &str, value: &Value) -> String {
    format!("event: {name}\n{}", data(value))
}

fn data(value: &Value) -> String {
    format!("data: {value}\n\n")
}
