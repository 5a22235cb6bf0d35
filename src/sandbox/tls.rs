//! TLS for the sandbox: for clients that speak nothing else. A certificate is given, or made and written down so that a client can
//! be told to trust it. It never listens by itself and judges no client.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::serve::Listener;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// Handshakes that may wait for the server.
const WAITING: usize = 64;

/// A certificate and its key, as PEM files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The certificate, with its chain after it.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

impl Identity {
    /// Makes a certificate for this machine, signed by itself, in `folder`. One that is there is used again, so that a client's trust
    /// outlives a restart. A client trusts it by `SSL_CERT_FILE`, `GIT_SSL_CAINFO`, `NODE_EXTRA_CA_CERTS` or the like.
    pub fn made_in(folder: &Path) -> io::Result<Self> {
        let identity = Self { certificate: folder.join("certificate.pem"), key: folder.join("key.pem") };
        if identity.certificate.is_file() && identity.key.is_file() {
            return Ok(identity);
        }
        std::fs::create_dir_all(folder)?;
        let names = ["localhost", "127.0.0.1", "::1", "github.localhost", "api.github.localhost"];
        let made = rcgen::generate_simple_self_signed(names.map(str::to_owned)).map_err(io::Error::other)?;
        std::fs::write(&identity.key, made.signing_key.serialize_pem())?;
        std::fs::write(&identity.certificate, made.cert.pem())?;
        Ok(identity)
    }

    fn config(&self) -> io::Result<ServerConfig> {
        let unusable = |path: &Path, error: &dyn std::fmt::Display| {
            io::Error::new(io::ErrorKind::InvalidInput, format!("{} cannot be used: {error}", path.display()))
        };
        let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(&self.certificate)
            .and_then(Iterator::collect)
            .map_err(|error| unusable(&self.certificate, &error))?;
        let key = PrivateKeyDer::from_pem_file(&self.key).map_err(|error| unusable(&self.key, &error))?;
        ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .map_err(|error| unusable(&self.certificate, &error))
    }
}

/// Connections whose handshake is done. A client that never ends its own keeps no other waiting.
pub(super) struct TlsListener {
    ready: mpsc::Receiver<(TlsStream<TcpStream>, SocketAddr)>,
    local: SocketAddr,
    accepting: JoinHandle<()>,
}

impl TlsListener {
    pub(super) fn over(listener: TcpListener, identity: &Identity) -> io::Result<Self> {
        let acceptor = TlsAcceptor::from(Arc::new(identity.config()?));
        let local = listener.local_addr()?;
        let (sender, ready) = mpsc::channel(WAITING);
        let accepting = tokio::spawn(accept_all(listener, acceptor, sender));
        Ok(Self { ready, local, accepting })
    }
}

impl Drop for TlsListener {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Listener for TlsListener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        match self.ready.recv().await {
            Some(connection) => connection,
            // The task that accepts ended with the runtime: nobody comes any more.
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        Ok(self.local)
    }
}

async fn accept_all(
    mut listener: TcpListener,
    acceptor: TlsAcceptor,
    ready: mpsc::Sender<(TlsStream<TcpStream>, SocketAddr)>,
) {
    loop {
        // Axum's own listener waits out what passes by itself, such as too many open files.
        let (stream, from) = Listener::accept(&mut listener).await;
        let (acceptor, ready) = (acceptor.clone(), ready.clone());
        tokio::spawn(async move {
            match acceptor.accept(stream).await {
                Ok(stream) => drop(ready.send((stream, from)).await),
                Err(error) => tracing::debug!(%from, %error, "a TLS handshake failed"),
            }
        });
    }
}
