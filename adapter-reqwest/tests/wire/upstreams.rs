//! Which upstream a request goes through.

use core::num::NonZeroUsize;

use holdoff_reqwest::{
    BreakerConfig, Guarded, Quota, Rate, RequestOptions, Stop, Upstream, Upstreams, valid,
};

use crate::server::{Server, answer};
use crate::{POLICY, QUICK, client, gave_up, get, millis};

fn per_host(capacity: usize) -> Upstreams {
    Upstreams::per_host(NonZeroUsize::new(capacity).unwrap(), |_| {
        let breaker = valid!(BreakerConfig::consecutive(1).build());
        Upstream::new(POLICY).with_breaker(breaker)
    })
}

#[tokio::test]
async fn a_host_in_trouble_is_no_trouble_for_others() {
    let bad = Server::replies(vec![answer(500, &[], "")]).await;
    let good = Server::replies(vec![answer(200, &[], "")]).await;
    let guarded = Guarded::new(client(), per_host(10));
    get(&guarded, &bad).await.unwrap();
    assert!(matches!(get(&guarded, &bad).await.unwrap_err().stop(), Stop::CircuitOpen { .. }));
    assert_eq!(get(&guarded, &good).await.unwrap().status(), 200);
    assert_eq!(guarded.guard().upstreams().len(), 2);

    // By its port, too, and whatever the path.
    let key = bad.address.to_string();
    let is_open = guarded.guard().upstreams().with(&key, |u| u.breaker().is_some());
    assert_eq!(is_open, Some(true));

    // Another key for one request.
    let options = RequestOptions::new().with_key("elsewhere");
    let request = guarded.client().get(bad.url("/")).build().unwrap();
    assert_eq!(guarded.execute_with(request, &options).await.unwrap().status(), 500);
    assert_eq!(guarded.guard().upstreams().len(), 3);
}

#[tokio::test]
async fn hosts_without_end_share_the_overflow() {
    let server = Server::replies(vec![answer(500, &[], "")]).await;
    let guarded = Guarded::new(client(), per_host(2));
    let ask = async |key: &str| {
        let options = RequestOptions::new().with_key(key);
        let request = guarded.client().get(server.url("/")).build().unwrap();
        guarded.execute_with(request, &options).await.map(|response| gave_up(&response).1)
    };
    for key in ["a", "b"] {
        ask(key).await.unwrap();
    }
    // The third opens the circuit of all that find no place.
    ask("c").await.unwrap();
    let long = "x".repeat(100_000);
    for number in 0..1_000 {
        let error = ask(&format!("host-{number}")).await.unwrap_err();
        assert!(matches!(error.stop(), Stop::CircuitOpen { .. }));
    }
    for key in [&*long, Upstreams::<0>::OVERFLOW] {
        assert!(matches!(ask(key).await.unwrap_err().stop(), Stop::CircuitOpen { .. }));
    }
    assert_eq!(guarded.guard().upstreams().len(), 2);
    assert_eq!(server.received().len(), 3);
}

#[tokio::test]
async fn idle_hosts_make_room() {
    let server = Server::replies(vec![answer(200, &[], "")]).await;
    let upstreams = Upstreams::per_host(NonZeroUsize::MIN, |key| {
        let name = if key == "b" { "b" } else { "other" };
        Upstream::new(POLICY).named(name)
    });
    let guarded = Guarded::new(client(), upstreams.with_idle_after(millis(1)));
    for key in ["a", "b"] {
        let options = RequestOptions::new().with_key(key);
        let request = guarded.client().get(server.url("/")).build().unwrap();
        guarded.execute_with(request, &options).await.unwrap();
        tokio::time::sleep(millis(20)).await;
    }
    let upstreams = guarded.guard().upstreams();
    assert_eq!((upstreams.len(), upstreams.with("b", |b| b.name())), (1, Some("b")));
    assert_eq!(upstreams.with("a", |_| ()), None);
}

#[tokio::test]
async fn a_request_can_have_a_policy_and_a_cost_of_its_own() {
    let server = Server::replies(vec![answer(500, &[], "")]).await;
    let quota = valid!(Quota::new(Rate::per_second(1_000), 10));
    let guarded = Guarded::new(client(), Upstream::new(POLICY).with_limiter(quota));
    let request = || guarded.client().get(server.url("/")).build().unwrap();

    let six = QUICK.with_max_attempts(6).build().unwrap();
    let options = RequestOptions::new().with_policy(six);
    let response = guarded.execute_with(request(), &options).await.unwrap();
    assert_eq!(gave_up(&response), (Stop::Attempts, 6));

    let options = RequestOptions::new().with_cost(11);
    let error = guarded.execute_with(request(), &options).await.unwrap_err();
    assert_eq!((error.stop(), error.attempts()), (Stop::CostTooHigh { burst: 10 }, 0));
    assert!(error.to_string().contains("0 attempts"), "{error}");
}
