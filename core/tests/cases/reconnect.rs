//! Links that are accepted and thrown out.

use holdoff::{BackoffConfig, Jitter, Reconnect};

use crate::common::{at, millis, secs};

// C64: espressif/esp-rainmaker-neo-firmware#1, bytebeamio/rumqtt#703 and #918
#[test]
fn a_server_that_accepts_and_throws_out_is_not_stormed() {
    let backoff = BackoffConfig::exponential(secs(1))
        .with_max_delay(secs(60))
        .with_jitter(Jitter::None)
        .build()
        .expect("valid");
    let growing = || [1, 2, 4, 8, 16, 32].into_iter().chain([60; 14]);
    // How long each session is; none: the connect fails.
    for session in [None, Some(0), Some(50), Some(29_999)] {
        let mut link = Reconnect::new(backoff, secs(30));
        let mut now = at(secs(0));
        let mut end = |now, session: Option<u64>| {
            let mut end = now;
            if let Some(session) = session {
                link.connected(now);
                end = now.saturating_add(millis(session));
            }
            let next = link.lost(end, 0);
            (next, next.saturating_duration_since(end).as_secs())
        };
        for delay in growing() {
            let (next, waited) = end(now, session);
            assert_eq!(waited, delay, "{session:?}");
            now = next;
        }
        // Only a stable session begins anew, and the next short one goes on from there.
        for (session, delay) in [
            (Some(29_999), 60),
            (Some(30_000), 1),
            (Some(50), 2),
            (None, 4),
            (Some(31_000), 1),
            (Some(31_000), 1),
            (None, 2),
        ] {
            let (next, waited) = end(now, session);
            assert_eq!(waited, delay, "{session:?}");
            now = next;
        }
    }
}
