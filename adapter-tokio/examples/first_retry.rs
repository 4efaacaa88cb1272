//! The smallest retry: an operation, a policy, and what came of it.
//!
//! ```sh
//! cargo run -p holdoff-tokio --example first_retry
//! ```

use holdoff_tokio::{Policy, retry};
use tokio::net::TcpStream;

#[tokio::main]
async fn main() {
    // Nobody listens there: refused, which is worth another try; four of them, within 20 s.
    match retry(&Policy::INTERACTIVE, || TcpStream::connect("127.0.0.1:1")).await {
        Ok(stream) => println!("connected: {stream:?}"),
        Err(gave_up) => println!("{gave_up}; last: {:?}", gave_up.last),
    }
}
