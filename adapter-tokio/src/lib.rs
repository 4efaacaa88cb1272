//! holdoff on tokio.
