//! Server-sent events, from bytes.

use core::time::Duration;

/// One event of a stream of server-sent events.
///
/// ```
/// use holdoff_reqwest::Event;
///
/// fn is_last(event: &Event) -> bool {
///     event.event == "message_stop" || event.data == "[DONE]"
/// }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Event {
    /// Its type, empty if none was sent (which means `message`).
    pub event: String,
    /// Its data, lines joined by line feeds.
    pub data: String,
    /// The last id sent in the stream so far.
    pub id: Option<String>,
    /// The delay (rounded to milliseconds) before a new connection that the server asks for with
    /// this event.
    pub retry: Option<Duration>,
}

/// An event is longer than the bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooLong;

/// Cuts bytes into events as the HTML standard says (§9.2.6).
#[derive(Debug)]
pub(super) struct Parser {
    longest: usize,
    line: Vec<u8>,
    is_after_cr: bool,
    is_first_line: bool,
    has_data: bool,
    event: Event,
}

impl Parser {
    /// A parser of events of at most `longest` bytes of data, and lines of as many.
    pub(super) fn new(longest: usize) -> Self {
        Self {
            longest,
            line: Vec::new(),
            is_after_cr: false,
            is_first_line: true,
            has_data: false,
            event: Event::default(),
        }
    }

    /// Reads from the start of `bytes` up to the end of an event; returns how many bytes that is,
    /// and the event if there is one.
    pub(super) fn read(&mut self, bytes: &[u8]) -> Result<(usize, Option<Event>), TooLong> {
        for (at, &byte) in bytes.iter().enumerate() {
            let is_second_half = core::mem::take(&mut self.is_after_cr) && byte == b'\n';
            match byte {
                b'\n' if is_second_half => {}
                b'\n' | b'\r' => {
                    self.is_after_cr = byte == b'\r';
                    if let Some(event) = self.end_line()? {
                        return Ok((at + 1, Some(event)));
                    }
                }
                _ if self.line.len() >= self.longest => return Err(TooLong),
                _ => self.line.push(byte),
            }
        }
        Ok((bytes.len(), None))
    }

    fn end_line(&mut self) -> Result<Option<Event>, TooLong> {
        let line = core::mem::take(&mut self.line);
        let mut line = &line[..];
        if core::mem::take(&mut self.is_first_line) {
            line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        }
        if line.is_empty() {
            return Ok(self.dispatch());
        }
        let mut parts = line.splitn(2, |&byte| byte == b':');
        let (name, value) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let value = String::from_utf8_lossy(value.strip_prefix(b" ").unwrap_or(value));
        match name {
            b"event" => self.event.event = value.into_owned(),
            b"data" => {
                if self.event.data.len() + value.len() >= self.longest {
                    return Err(TooLong);
                }
                if core::mem::replace(&mut self.has_data, true) {
                    self.event.data.push('\n');
                }
                self.event.data.push_str(&value);
            }
            b"id" if !value.contains('\0') => self.event.id = Some(value.into_owned()),
            b"retry" if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) => {
                self.event.retry = value.parse().ok().map(Duration::from_millis);
            }
            _ => {} // A comment, or a field that nobody knows.
        }
        Ok(None)
    }

    fn dispatch(&mut self) -> Option<Event> {
        let id = self.event.id.clone();
        let event = core::mem::replace(&mut self.event, Event { id, ..Event::default() });
        core::mem::take(&mut self.has_data).then_some(event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(bytes: &[u8], chunk: usize) -> Vec<(String, String)> {
        let (mut parser, mut events) = (Parser::new(100), Vec::new());
        for mut chunk in bytes.chunks(chunk) {
            while !chunk.is_empty() {
                let (read, event) = parser.read(chunk).expect("short");
                chunk = &chunk[read..];
                events.extend(event.map(|event| (event.event, event.data)));
            }
        }
        events
    }

    #[test]
    fn events_are_the_same_however_they_arrive() {
        let stream = b"\xef\xbb\xbf: hello\nevent: a\r\ndata: 1\r\n\r\ndata:2\rdata: 3\r\r\
            event: nothing\n\nid: 7\nretry: 10\ndata\n\ndata:  4\nunknown: x\n\ndata: cut";
        let expected = [("a", "1"), ("", "2\n3"), ("", ""), ("", " 4")];
        let expected = expected.map(|(event, data)| (event.to_owned(), data.to_owned()));
        for chunk in 1..=stream.len() {
            assert_eq!(events(stream, chunk), expected, "chunks of {chunk}");
        }
    }

    #[test]
    fn what_is_too_long_is_refused() {
        let mut parser = Parser::new(10);
        assert_eq!(parser.read(b"data: 123456789"), Err(TooLong));
        let mut parser = Parser::new(10);
        assert_eq!(parser.read(b"data: 1234\ndata: 1234\ndata: 1234\n"), Err(TooLong));
    }

    #[test]
    fn ids_stay_and_the_rest_does_not() {
        let mut parser = Parser::new(100);
        let (read, first) = parser.read(b"id: 7\nevent: a\nretry: 10\ndata: 1\n\n").expect("short");
        assert_eq!(read, 34);
        let first = first.expect("whole");
        assert_eq!(
            (first.id.as_deref(), first.retry),
            (Some("7"), Some(Duration::from_millis(10)))
        );
        let (_, second) = parser.read(b"data: 2\n\n").expect("short");
        let second = second.expect("whole");
        assert_eq!((second.id.as_deref(), second.retry, &*second.event), (Some("7"), None, ""));
    }
}
