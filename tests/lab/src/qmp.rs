// SPDX-License-Identifier: GPL-2.0

//! QEMU's machine protocol: one JSON object a line, events between the answers.

use crate::failure::{
    At,
    Failure,
    Result, //
};
use serde_json::{
    json,
    Value, //
};
use std::{
    io::{
        ErrorKind,
        Read,
        Write, //
    },
    os::unix::net::UnixStream,
    time::{
        Duration,
        Instant, //
    },
};

const STEP: &str = "talk to QEMU's monitor";

/// One message from QEMU.
#[derive(Debug, PartialEq)]
pub(crate) enum Message {
    /// Answer to a command.
    Return(Value),
    /// Refusal of a command.
    Error(String),
    /// Something happened.
    Event { name: String, data: Value },
    /// What QEMU says first.
    Greeting,
}

impl Message {
    /// Reads one line.
    pub(crate) fn parse(line: &str) -> Result<Self> {
        let value: Value = serde_json::from_str(line).at(STEP)?;
        if let Some(name) = value["event"].as_str() {
            return Ok(Self::Event {
                name: name.to_owned(),
                data: value["data"].clone(),
            });
        }
        if let Some(answer) = value.get("return") {
            return Ok(Self::Return(answer.clone()));
        }
        if let Some(text) = value["error"]["desc"].as_str() {
            return Ok(Self::Error(text.to_owned()));
        }
        if value.get("QMP").is_some() {
            return Ok(Self::Greeting);
        }
        Err(Failure::new(STEP, format!("not understood: {line}")))
    }
}

/// A connection to the monitor.
pub(crate) struct Qmp {
    stream: UnixStream,
    unread: Vec<u8>,
    events: Vec<(String, Value)>,
}

impl Qmp {
    /// Greets QEMU.
    pub(crate) fn new(stream: UnixStream) -> Result<Self> {
        stream
            .set_read_timeout(Some(Duration::from_millis(100)))
            .at(STEP)?;
        let mut qmp = Self {
            stream,
            unread: Vec::new(),
            events: Vec::new(),
        };
        qmp.command("qmp_capabilities", json!({}))?;
        Ok(qmp)
    }

    /// Sends a command and waits for its answer.
    pub(crate) fn command(&mut self, name: &str, arguments: Value) -> Result<Value> {
        let line = json!({"execute": name, "arguments": arguments}).to_string();
        self.stream
            .write_all(format!("{line}\n").as_bytes())
            .at(STEP)?;
        let end = Instant::now() + Duration::from_secs(30);
        loop {
            match self.message(end)? {
                Some(Message::Return(value)) => return Ok(value),
                Some(Message::Error(text)) => {
                    return Err(Failure::new(STEP, format!("{name}: {text}")))
                }
                Some(Message::Event { name, data }) => self.events.push((name, data)),
                Some(Message::Greeting) => {}
                None => return Err(Failure::new(STEP, format!("{name}: no answer in 30 s"))),
            }
        }
    }

    /// Waits for an event, which may have come already; each is seen once.
    pub(crate) fn wait_event(&mut self, name: &str, limit: Duration) -> Result<Value> {
        let end = Instant::now() + limit;
        loop {
            if let Some(at) = self.events.iter().position(|(event, _)| event == name) {
                return Ok(self.events.remove(at).1);
            }
            match self.message(end)? {
                Some(Message::Event { name, data }) => self.events.push((name, data)),
                Some(_) => {}
                None => return Err(Failure::new(STEP, format!("no {name} in {limit:?}"))),
            }
        }
    }

    fn message(&mut self, end: Instant) -> Result<Option<Message>> {
        let mut buffer = [0; 4096];
        loop {
            if let Some(at) = self.unread.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.unread.drain(..=at).collect();
                return Message::parse(String::from_utf8_lossy(&line).trim()).map(Some);
            }
            match self.stream.read(&mut buffer) {
                Ok(0) => return Err(Failure::new(STEP, "QEMU has ended")),
                Ok(count) => self.unread.extend_from_slice(&buffer[..count]),
                Err(error) if is_timeout(error.kind()) => {}
                Err(error) => return Err(Failure::new(STEP, error)),
            }
            if Instant::now() > end {
                return Ok(None);
            }
        }
    }
}

/// Whether a read ended because nothing had come yet.
pub(crate) fn is_timeout(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn tells_messages_apart() {
        let event = Message::parse(r#"{"event": "STOP", "data": {"x": 1}, "timestamp": {}}"#);
        let data = json!({"x": 1});
        assert_eq!(
            event.unwrap(),
            Message::Event {
                name: "STOP".into(),
                data
            }
        );
        let answer = Message::parse(r#"{"return": {}}"#).unwrap();
        assert_eq!(answer, Message::Return(json!({})));
        let error = Message::parse(r#"{"error": {"class": "C", "desc": "no such id"}}"#).unwrap();
        assert_eq!(error, Message::Error("no such id".into()));
        assert!(Message::parse("{}").is_err());
        assert!(Message::parse("garbage").is_err());
    }

    #[test]
    fn event_before_the_answer_is_kept() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let qemu = thread::spawn(move || {
            let answers = concat!(
                "{\"QMP\": {}}\r\n{\"return\": {}}\r\n",
                "{\"event\": \"DEVICE_DELETED\", \"data\": {\"device\": \"d0\"}}\r\n",
                "{\"return\": {\"ok\": true}}\r\n",
            );
            theirs.write_all(answers.as_bytes()).unwrap();
            theirs
        });
        let mut qmp = Qmp::new(ours).unwrap();
        assert_eq!(qmp.command("device_del", json!({})).unwrap()["ok"], true);
        let limit = Duration::from_secs(1);
        assert_eq!(
            qmp.wait_event("DEVICE_DELETED", limit).unwrap()["device"],
            "d0"
        );
        assert!(qmp.wait_event("DEVICE_DELETED", Duration::ZERO).is_err());
        drop(qemu.join().unwrap());
        assert!(qmp.command("x", json!({})).is_err());
    }
}
