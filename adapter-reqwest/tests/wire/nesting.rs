//! C60: layers do not multiply.

use core::num::NonZeroU32;

use holdoff_reqwest::{
    BudgetConfig, FinalFailure, Guard, Ratio, RequestOptions, Stop, Upstream, nesting, valid,
};
use reqwest::header::HeaderName;

use crate::server::{Server, answer};
use crate::{POLICY, QUICK, gave_up, get, guarded};

const ATTEMPT: HeaderName = HeaderName::from_static("x-attempt");

#[tokio::test]
async fn an_outer_layer_tries_again_and_the_inner_does_not() {
    let server = Server::replies(vec![answer(503, &[], "")]).await;
    let guard = Guard::new(Upstream::new(POLICY)).with_final_failure(FinalFailure::AsError);
    let inner = guarded(guard);
    let outer = Upstream::new(QUICK.with_max_attempts(4).build().unwrap());
    let gave_up = outer.call(|| get(&inner, &server)).await.unwrap_err();
    assert_eq!((gave_up.stop, gave_up.attempts), (Stop::Attempts, 4));
    assert_eq!(gave_up.last.unwrap().stop(), Stop::Nested);
    assert_eq!(server.received().len(), 4);

    let options = RequestOptions::new().retry_although_nested();
    let url = server.url("/");
    let gave_up =
        outer.call(|| inner.send_with(&options, |client| client.get(&url))).await.unwrap_err();
    assert_eq!(gave_up.last.unwrap().stop(), Stop::Attempts);
    assert_eq!(server.received().len(), 4 + 4 * 3);
}

/// With a budget of 10 % and 3 that both layers share, layers that are let multiply do not: 3
/// retries in all, whoever asks for them.
#[tokio::test]
async fn a_budget_that_layers_share_bounds_their_product() {
    static SHARED: Upstream =
        Upstream::new(POLICY).with_budget(valid!(BudgetConfig::new(3, Ratio::percent(10)).build()));

    let server = Server::replies(vec![answer(503, &[], "")]).await;
    let guard = Guard::new(&SHARED).with_final_failure(FinalFailure::AsError);
    let inner = guarded(guard);
    let options = RequestOptions::new().retry_although_nested();
    let url = server.url("/");
    let four = SHARED.prepare().with_max_attempts(NonZeroU32::new(4).unwrap());
    let outer = four.run(|_| inner.send_with(&options, |client| client.get(&url)));
    assert_eq!(outer.await.unwrap_err().stop, Stop::Budget);
    assert!(server.received().len() <= 4, "{} requests", server.received().len());
}

#[tokio::test]
async fn the_attempt_is_told_to_the_server_if_somebody_tries_again() {
    let server = Server::replies(vec![answer(503, &[], "")]).await;
    let guarded = guarded(Guard::new(Upstream::new(POLICY)).with_attempt_header(ATTEMPT));
    let numbers = |server: &Server| -> Vec<Option<String>> {
        server.received().iter().map(|r| r.header("x-attempt").map(str::to_owned)).collect()
    };
    get(&guarded, &server).await.unwrap();
    assert_eq!(numbers(&server), ["1", "2", "3"].map(|number| Some(number.to_owned())));

    let once = RequestOptions::new().with_max_attempts(NonZeroU32::MIN);
    let server = Server::replies(vec![answer(503, &[], "")]).await;
    let request = guarded.client().get(server.url("/")).build().unwrap();
    guarded.execute_with(request, &once).await.unwrap();
    assert_eq!(numbers(&server), [None]);
}

#[tokio::test]
async fn a_gateway_leaves_it_to_its_client() {
    let server = Server::replies(vec![answer(503, &[], "")]).await;
    let gateway = guarded(Guard::new(Upstream::new(POLICY)).with_attempt_header(ATTEMPT));

    // It hands the header on.
    let request = gateway.client().get(server.url("/")).header(ATTEMPT, "7").build().unwrap();
    let response = gateway.execute(request).await.unwrap();
    assert_eq!(gave_up(&response), (Stop::Nested, 1));
    assert_eq!(server.received()[0].header("x-attempt"), Some("7"));

    // Or it does not, but knows of it; so does the next server.
    let mut headers = reqwest::header::HeaderMap::new();
    headers.insert(ATTEMPT, 7.into());
    let response = nesting(&headers, &ATTEMPT).scope(get(&gateway, &server)).await.unwrap();
    assert_eq!(gave_up(&response), (Stop::Nested, 1));
    assert_eq!(server.received()[1].header("x-attempt"), Some("1"));
}
