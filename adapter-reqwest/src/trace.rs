//! Attempts as spans.

use core::future::Future;

use holdoff::Attempt;
use reqwest::{Request, StatusCode};
use tracing::field::Empty;
use tracing::{Instrument, debug_span};

pub(crate) struct Span(tracing::Span);

impl Span {
    pub(crate) fn start(request: &Request, attempt: Attempt) -> Self {
        let span = debug_span!(
            target: "holdoff",
            "holdoff.http_attempt",
            otel.kind = "client",
            http.request.method = request.method().as_str(),
            server.address = request.url().host_str(),
            http.request.resend_count = Empty,
            http.response.status_code = Empty,
        );
        if attempt.number > 1 {
            span.record("http.request.resend_count", attempt.number - 1);
        }
        Self(span)
    }

    pub(crate) fn answered(&self, status: StatusCode) {
        self.0.record("http.response.status_code", status.as_u16());
    }

    pub(crate) fn around<F: Future>(&self, attempt: F) -> impl Future<Output = F::Output> {
        attempt.instrument(self.0.clone())
    }
}
