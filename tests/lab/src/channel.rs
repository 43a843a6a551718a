// SPDX-License-Identifier: GPL-2.0

//! The command channel: a serial line whose far end is the guest's shell loop.
//!
//! A command goes out as `N BASE64\n`. What it prints comes back as it is, then a line that
//! starts with the record separator: `RS end N CODE`.

use crate::{
    failure::{
        At,
        Failure,
        Result, //
    },
    qmp::is_timeout,
};
use std::{
    io::{
        Read,
        Write, //
    },
    os::unix::net::UnixStream,
    time::{
        Duration,
        Instant, //
    },
};

const STEP: &str = "talk to the guest";
const RECORD: u8 = 0x1e;

/// How a command in the guest ended.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Output {
    /// Exit code.
    pub(crate) code: i32,
    /// Standard output and error.
    pub(crate) text: String,
}

/// What follows the output of a command.
#[derive(Debug, PartialEq)]
enum Record {
    Ready,
    End { number: u32, code: i32 },
}

/// Our end of the line.
pub(crate) struct Channel {
    stream: UnixStream,
    unread: Vec<u8>,
    number: u32,
}

impl Channel {
    /// Takes a connected line.
    pub(crate) fn new(stream: UnixStream) -> Result<Self> {
        stream
            .set_read_timeout(Some(Duration::from_millis(50)))
            .at(STEP)?;
        Ok(Self {
            stream,
            unread: Vec::new(),
            number: 0,
        })
    }

    /// Waits for the guest's shell loop.
    pub(crate) fn wait_ready(&mut self, limit: Duration) -> Result<()> {
        let end = Instant::now() + limit;
        loop {
            if let (_, Record::Ready) = self.record(end, &mut |_| {})? {
                return Ok(());
            }
        }
    }

    /// Runs a command; `on_text` sees its output while it comes.
    pub(crate) fn run(
        &mut self,
        command: &str,
        limit: Duration,
        on_text: &mut dyn FnMut(&[u8]),
    ) -> Result<Output> {
        self.number += 1;
        let line = format!("{} {}\n", self.number, base64_encode(command.as_bytes()));
        self.stream.write_all(line.as_bytes()).at(STEP)?;
        let end = Instant::now() + limit;
        loop {
            let (text, record) = self.record(end, on_text)?;
            if let Record::End { number, code } = record {
                if number == self.number {
                    let text = String::from_utf8_lossy(&text).into_owned();
                    return Ok(Output { code, text });
                }
            }
        }
    }

    fn record(
        &mut self,
        end: Instant,
        on_text: &mut dyn FnMut(&[u8]),
    ) -> Result<(Vec<u8>, Record)> {
        let mut buffer = [0; 65536];
        let mut told = 0;
        loop {
            let (text, record) = split(&self.unread, told);
            on_text(&text[told..]);
            told = text.len();
            if let Some((record, length)) = record {
                let text = text.to_vec();
                self.unread.drain(..text.len() + length);
                return Ok((text, record));
            }
            match self.stream.read(&mut buffer) {
                Ok(0) => return Err(Failure::new(STEP, "the guest has died")),
                Ok(count) => self.unread.extend_from_slice(&buffer[..count]),
                Err(error) if is_timeout(error.kind()) => {}
                Err(error) => return Err(Failure::new(STEP, error)),
            }
            if Instant::now() > end {
                return Err(Failure::new(STEP, "no answer within the limit"));
            }
        }
    }
}

/// Longest line of a record.
const LONGEST: usize = 64;

/// Text before the first record; that record if it is complete, and its length.
///
/// A separator that starts no record is a part of what the command prints. The first `known` bytes
/// are text.
fn split(bytes: &[u8], known: usize) -> (&[u8], Option<(Record, usize)>) {
    let mut from = known;
    while let Some(at) = bytes[from..].iter().position(|byte| *byte == RECORD) {
        let (text, rest) = bytes.split_at(from + at);
        let window = &rest[1..rest.len().min(LONGEST)];
        match window.iter().position(|byte| *byte == b'\n') {
            Some(end) => {
                if let Some(record) = parse(&window[..end]) {
                    return (text, Some((record, end + 2)));
                }
            }
            None if rest.len() < LONGEST => return (text, None),
            None => {}
        }
        from += at + 1;
    }
    (bytes, None)
}

fn parse(line: &[u8]) -> Option<Record> {
    let line = std::str::from_utf8(line).ok()?;
    match line.trim_end().split(' ').collect::<Vec<_>>().as_slice() {
        ["ready"] => Some(Record::Ready),
        ["end", number, code] => Some(Record::End {
            number: number.parse().ok()?,
            code: code.parse().ok()?,
        }),
        _ => None,
    }
}

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Encodes bytes so that they survive a line of text.
pub(crate) fn base64_encode(bytes: &[u8]) -> String {
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let word = (0..3).fold(0, |word, i| {
            word << 8 | u32::from(*chunk.get(i).unwrap_or(&0))
        });
        for i in 0..4 {
            let digit = ALPHABET[(word >> (18 - 6 * i) & 63) as usize];
            text.push(if i <= chunk.len() {
                char::from(digit)
            } else {
                '='
            });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn base64_of_each_rest() {
        assert_eq!(base64_encode(b""), "");
        assert_eq!(base64_encode(b"Man"), "TWFu");
        assert_eq!(base64_encode(b"Ma"), "TWE=");
        assert_eq!(base64_encode(b"M"), "TQ==");
        assert_eq!(base64_encode(&[0xfb, 0xff, 0xfe, 0x00]), "+//+AA==");
    }

    #[test]
    fn output_ends_at_the_record_of_its_command() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let guest = thread::spawn(move || {
            theirs.write_all(b"junk\x1eready\n").unwrap();
            let mut command = [0; 7];
            theirs.read_exact(&mut command).unwrap();
            assert_eq!(&command, b"1 bHM=\n");
            for part in ["out", "put\n\x1een", "d 0 0\nmore\x1eend 1 ", "13", "7\n"] {
                theirs.write_all(part.as_bytes()).unwrap();
            }
        });
        let mut channel = Channel::new(ours).unwrap();
        let limit = Duration::from_secs(5);
        channel.wait_ready(limit).unwrap();
        let mut seen = Vec::new();
        let output = channel
            .run("ls", limit, &mut |text| seen.extend_from_slice(text))
            .unwrap();
        assert_eq!(
            output,
            Output {
                code: 137,
                text: "more".into()
            }
        );
        assert_eq!(seen, b"output\nmore");
        guest.join().unwrap();
        assert!(channel.run("ls", limit, &mut |_| {}).is_err());
    }

    #[test]
    fn a_separator_in_the_output_is_output() {
        let record = Record::End { number: 7, code: 1 };
        let text = b"a\x1eb\n\x1eend seven 1\n\x1e\xff\n\x1e\x1e";
        let bytes = [text.as_slice(), b"\x1eend 7 1\nrest"].concat();
        assert_eq!(split(&bytes, 0), (text.as_slice(), Some((record, 9))));
        // It may still become a record, until it is too long for one.
        assert_eq!(split(b"a\x1eend 7", 0), (b"a".as_slice(), None));
        let long = [b"\x1e".as_slice(), &[b'x'; LONGEST]].concat();
        assert_eq!(split(&long, 0), (long.as_slice(), None));
    }
}
