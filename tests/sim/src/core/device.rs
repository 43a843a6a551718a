// SPDX-License-Identifier: GPL-2.0

//! Controllers, requests, and the completion queues between them.

use super::{
    heap::Event,
    Core, //
};
use crate::{
    fault::Plant,
    trace::What,
    Ns, //
};

/// A controller.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Controller {
    /// When the next command can begin.
    free_at: Ns,
}

/// Where a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Free,
    Device,
    Posted,
    Taken,
    /// The controller was reset.
    Forgotten,
}

/// A request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    pub(crate) submitted: Ns,
    pub(crate) line: u32,
    pub(crate) job: u32,
    pub(crate) place: Place,
    /// How often it was forgotten.
    epoch: u32,
}

/// A job: keeps requests outstanding.
#[derive(Debug, Default)]
pub(crate) struct Job {
    pub(crate) task: u32,
    pub(crate) depth: u32,
    /// Submitted and not reaped.
    pub(crate) outstanding: u32,
    /// Completed and not reaped: when they were submitted.
    pub(crate) done: Vec<Ns>,
    /// Waits for completions.
    pub(crate) waits: bool,
    next_file: u32,
    /// Controllers to go round.
    files: u32,
}

impl Job {
    pub(crate) fn new(task: u32, depth: u32, files: u32, first: u32) -> Self {
        Self {
            task,
            depth,
            files,
            next_file: first % files,
            ..Self::default()
        }
    }
}

impl Core {
    /// The queue that a job's next request goes to.
    fn target(&self, job: u32) -> u32 {
        let queues = self.world.irq_cpu.len() as u32;
        let cpu = self.here();
        self.jobs[job as usize].next_file * queues + self.world.queue_of[cpu as usize]
    }

    /// Whether a job has less than `depth` outstanding, and goes on.
    pub(crate) fn wants_more(&self, job: u32, depth: u32) -> bool {
        !self.quiet && self.jobs[job as usize].outstanding < depth
    }

    /// A job submits one request. Returns whether there was a tag for it; if not the job waits.
    ///
    /// It counts as submitted since `began`.
    pub(crate) fn submit(&mut self, job: u32, began: Ns) -> bool {
        let line = self.target(job);
        let most = self.machine.device.depth - 1;
        let task = self.jobs[job as usize].task;
        let this = self.line(line);
        if this.tags >= most {
            this.starved.push_back(task);
            return false;
        }
        this.tags += 1;
        let owner = &mut self.jobs[job as usize];
        owner.next_file = (owner.next_file + 1) % owner.files;
        owner.outstanding += 1;
        let request = self.new_request(line, job, began);
        self.checker.submitted(line, request);
        self.begin_service(request);
        true
    }

    fn begin_service(&mut self, request: u32) {
        let Request { line, epoch, .. } = self.requests[request as usize];
        let at = self.service(line);
        self.heap.plan(at, Event::Posted { request, epoch });
    }

    /// A reset: the device forgets what it was asked for on `line`, and what nobody took.
    pub(crate) fn forget(&mut self, line: u32) {
        let now = self.now;
        let this = self.line(line);
        this.posted.clear();
        let controller = this.controller as usize;
        self.controllers[controller].free_at = now;
        for request in self.requests.iter_mut().filter(|this| this.line == line) {
            if matches!(request.place, Place::Device | Place::Posted) {
                request.place = Place::Forgotten;
                request.epoch = request.epoch.wrapping_add(1);
            }
        }
    }

    /// After a reset: the device is asked again.
    pub(crate) fn ask_again(&mut self, line: u32) {
        for request in 0..self.requests.len() {
            let this = &mut self.requests[request];
            if this.line != line || this.place != Place::Forgotten {
                continue;
            }
            this.place = Place::Device;
            if !self.strikes(Plant::ForgetsRequest) {
                self.begin_service(u32::try_from(request).unwrap_or(u32::MAX));
            }
        }
    }

    fn new_request(&mut self, line: u32, job: u32, began: Ns) -> u32 {
        let request = Request {
            submitted: began,
            line,
            job,
            place: Place::Device,
            epoch: 0,
        };
        if let Some(free) = self.free.pop() {
            let epoch = self.requests[free as usize].epoch;
            self.requests[free as usize] = Request { epoch, ..request };
            return free;
        }
        self.requests.push(request);
        (self.requests.len() - 1) as u32
    }

    /// When the device is done with a command that begins now.
    fn service(&mut self, line: u32) -> Ns {
        let device = &self.machine.device;
        let slow = self.random.chance(device.slow_permille);
        let base = if slow {
            self.random.spread(device.slow_ns, device.base_cv / 4)
        } else {
            self.random.spread(device.base_ns, device.base_cv)
        };
        let begin = self.take_slot(line);
        begin + base
    }

    /// The cap of the controller, of which this world has its share.
    fn take_slot(&mut self, line: u32) -> Ns {
        let device = &self.machine.device;
        if device.cap_iops == 0 {
            return self.now;
        }
        let mean = 1_000_000_000 * Ns::from(self.world.share) / device.cap_iops;
        let time = self.random.spread(mean, device.cap_cv);
        let controller = &mut self.controllers[self.lines[line as usize].controller as usize];
        let begin = controller.free_at.max(self.now);
        controller.free_at = begin + time;
        begin
    }

    /// The device posts a completion.
    pub(crate) fn on_posted(&mut self, request: u32, epoch: u32) {
        let Request {
            line,
            epoch: newest,
            ..
        } = self.requests[request as usize];
        if epoch != newest {
            return;
        }
        self.requests[request as usize].place = Place::Posted;
        self.line(line).posted.push_back(request);
        self.send(line);
    }

    /// The running context begins to drain.
    pub(crate) fn begin_drain(&mut self, line: u32) {
        self.set_working_for(Some(line));
        self.checker.drain_begins(self.now, line);
        self.line(line).drainers += 1;
    }

    /// Takes at most `most` completions off the queue. Returns how many.
    pub(crate) fn take(&mut self, line: u32, most: u32) -> u32 {
        let this = &mut self.lines[line as usize];
        let count = this.posted.len().min(most as usize);
        for request in this.posted.drain(..count) {
            self.requests[request as usize].place = Place::Taken;
            this.batch.push_back(request);
        }
        count as u32
    }

    /// Completes one request of the batch; none: it is empty.
    pub(crate) fn complete_one(&mut self, line: u32) {
        let this = self.line(line);
        let Some(request) = this.batch.pop_front() else {
            return;
        };
        this.tags -= 1;
        this.completed += 1;
        let starved = this.starved.pop_front();
        self.checker.completed(self.now, line, request);
        if self.strikes(Plant::CompletesTwice) {
            self.checker.completed(self.now, line, request);
        }
        let done = &mut self.requests[request as usize];
        if std::mem::replace(&mut done.place, Place::Free) != Place::Taken {
            return;
        }
        let (job, submitted) = (done.job, done.submitted);
        self.free.push(request);
        self.counts.completed += 1;
        let job = &mut self.jobs[job as usize];
        job.done.push(submitted);
        if std::mem::take(&mut job.waits) {
            let task = job.task;
            self.wake(task);
        }
        if let Some(task) = starved {
            self.wake(task);
        }
    }

    pub(crate) fn end_drain(&mut self, line: u32, found: u32) {
        self.set_working_for(None);
        self.blame_drain(line, found);
        self.note(What::Drained { line, found });
        self.checker.drain_ends(line);
        let this = self.line(line);
        this.drainers -= 1;
        if this.posted.is_empty() {
            this.excused = false;
        }
    }

    /// How many completions a job can reap; none: it waits for the next one.
    pub(crate) fn reapable(&mut self, job: u32) -> u32 {
        let job = &mut self.jobs[job as usize];
        job.waits = job.done.is_empty();
        job.done.len() as u32
    }

    /// The job has got `count` completions.
    pub(crate) fn reap(&mut self, job: u32, count: u32) {
        let now = self.now;
        let job = &mut self.jobs[job as usize];
        job.outstanding -= count;
        for submitted in job.done.drain(..count as usize) {
            self.latency.saturating_record(now - submitted);
        }
    }
}
