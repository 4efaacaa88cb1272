//! A server with a certificate of its own making.

use core::net::SocketAddr;
use std::io;
use std::sync::{Arc, Mutex};

use rustls::crypto::ring;
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::{ServerConfig, pki_types::CertificateDer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

/// Of every request.
pub(crate) const BODY: &[u8] = b"hello";

/// What the server does with a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Act {
    Answer,
    /// Ends it within the handshake.
    Close,
    /// Ends it after a part of an answer of unknown length, without a word.
    Cut,
    /// Never answers the handshake.
    Hang,
    /// Answers the handshake in plain HTTP.
    NoTls,
    /// Resets it within the handshake.
    Reset,
}

#[derive(Default)]
struct Counts {
    connections: usize,
    requests: usize,
}

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) certificate: CertificateDer<'static>,
    counts: Arc<Mutex<Counts>>,
}

impl Server {
    /// One for `localhost` that acts so in turn, the last for ever.
    pub(crate) async fn acts(acts: &'static [Act]) -> Self {
        let _ = ring::default_provider().install_default(); // By the first test.
        let names = vec!["localhost".to_owned()];
        let made = rcgen::generate_simple_self_signed(names).unwrap();
        let certificate = made.cert.der().clone();
        let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
        let config = ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.clone()], key.into())
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));

        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let counts = Arc::new(Mutex::new(Counts::default()));
        let counted = Arc::clone(&counts);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let number = {
                    let mut counts = counted.lock().unwrap();
                    counts.connections += 1;
                    counts.connections - 1
                };
                let act = acts[number.min(acts.len() - 1)];
                tokio::spawn(serve(stream, act, acceptor.clone(), Arc::clone(&counted)));
            }
        });
        Self { address, certificate, counts }
    }

    pub(crate) fn connections(&self) -> usize {
        self.counts.lock().unwrap().connections
    }

    pub(crate) fn requests(&self) -> usize {
        self.counts.lock().unwrap().requests
    }
}

async fn serve(
    mut stream: TcpStream,
    act: Act,
    acceptor: TlsAcceptor,
    counts: Arc<Mutex<Counts>>,
) -> io::Result<()> {
    let mut buffer = [0; 4096];
    let is_cut = match act {
        Act::Answer => false,
        Act::Cut => true,
        Act::Close | Act::Hang | Act::NoTls | Act::Reset => {
            // The client's hello.
            let _ = stream.read(&mut buffer).await?;
            match act {
                Act::Hang => core::future::pending().await,
                Act::NoTls => stream.write_all(b"HTTP/1.1 400 What?\r\n\r\n").await?,
                Act::Reset => stream.set_zero_linger()?,
                _ => {}
            }
            return Ok(());
        }
    };
    let mut stream = acceptor.accept(stream).await?;
    let mut request = Vec::new();
    while stream.read_buf(&mut request).await? > 0 {
        if !request.ends_with(BODY) {
            continue;
        }
        request.clear();
        counts.lock().unwrap().requests += 1;
        if is_cut {
            stream.write_all(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nonly this").await?;
            return stream.flush().await;
        }
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nfine").await?;
    }
    Ok(())
}
