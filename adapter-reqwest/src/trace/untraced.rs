//! Without the feature `tracing`: nothing.

use core::future::Future;

use holdoff::Attempt;
use reqwest::{Request, StatusCode};

pub(crate) struct Span;

impl Span {
    pub(crate) const fn start(_request: &Request, _attempt: Attempt) -> Self {
        Self
    }

    pub(crate) const fn answered(&self, _status: StatusCode) {}

    pub(crate) const fn around<F: Future>(&self, attempt: F) -> F {
        attempt
    }
}
