#!/usr/bin/env python3
"""Plants bugs into rules, writer, store and processor, one at a time, and checks that the suite catches each.

Usage: python3 tests/planted/run.py [NAME ...]

Works on a copy of the committed tree in a temporary folder. Prints a line a bug and exits with 1 if one survives.
"""
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

R = "src/engine/rules/"
C = "src/engine/commits.rs"
E = "src/engine/"
I = "src/engine/inbox.rs"
S = "src/engine/store/"
P = "src/processor/"
# name, file, what stands there, what is planted
BUGS = [
    ("retry_one_ms_early", R + "fail.rs", "(due > step.now).then_some(due)", "(due > step.now).then_some(Timestamp::from_millis(due.as_millis() - 1))"),
    ("renewed_from_the_old_end", R + "settle.rs", "let until = self.now + queue.options.lock;\n        self.locks.renew(token, until);", "let until = self.now;\n        self.locks.renew(token, until);"),
    ("spent_one_too_late", R + "fail.rs", "message.delivery_count >= self.queue", "message.delivery_count > self.queue"),
    ("count_not_kept_on_release", R + "fail.rs", "message.delivery_count -= 1;", ""),
    ("hand_out_not_counted", R + "receive.rs", "record.delivery_count += 1;", ""),
    ("early_is_offered", R + "workflow.rs", "Status::Ready if !self.is_early(&message)", "Status::Ready"),
    ("held_is_offered", R + "workflow.rs", "(Some(_), _) | (None, Some((_, LockKind::Deliveries, _))) => false,", "(None, Some((_, LockKind::Deliveries, _))) => false, (Some(_), Some(_)) => false,\n            (Some(_), None) => self.offer_from(step, 0)?.is_some(),"),
    ("failed_head_is_jumped", R + "workflow.rs", "Status::Locked { .. } => from = rank + 1,", "Status::Locked { .. } | Status::Failed { .. } => from = rank + 1,"),
    ("completed_ahead_not_passed", R + "order.rs", "self.pass_marks(step)?;\n        // What", "// What"),
    ("skipped_not_remembered", R + "order.rs", "!matches!(how, Settled::Completed | Settled::Aside)", "!matches!(how, Settled::Completed | Settled::Aside | Settled::Skipped)"),
    ("gap_reminder_forgotten", R + "gap.rs", "step.set_reminder(due, self.key.queue, Remind::Gap(self.key.stream.clone()))?;\n        }\n        Ok(())", "}\n        Ok(())"),
    ("gap_judged_before_it_is_reached", R + "gap.rs", "let reached = before.is_none() && step.locks", "let reached = step.locks"),
    ("gap_judged_between_sends", R + "send.rs", "workflow.close_unjudged(self)?\n        }", "workflow.close(self)?\n        }"),
    ("gap_judged_too_early", R + "gap.rs", "gap.due.is_some() || ", ""),
    ("late_is_accepted_twice", R + "judge.rs", "Ok(if rank < self.record.cursor { PlaceUse::Completed }", "Ok(if rank + 1 < self.record.cursor { PlaceUse::Completed }"),
    ("window_is_closed", R + "judge.rs", "step.now < known.until", "step.now <= known.until"),
    ("taken_place_is_overwritten", R + "judge.rs", "if same { Ok(Verdict::Duplicate(by)) } else", "if same { Ok(Verdict::Duplicate(by)) } else if true { Ok(Verdict::Accept) } else"),
    ("rest_of_a_run_is_counted", R + "settle.rs", "workflow.give_back(self, *sequence)?;", "workflow.fail(self, *sequence, crate::engine::rules::command::Retry::Now, \"rest\")?;"),
    ("later_ones_not_revoked", R + "settle.rs", "if let Some(rank) = self.blocking_rank(step, sequence)?.filter(|_| !self.settles_apart(step, token)) {\n            self.revoke_behind(step, token, rank)?;", "if self.blocking_rank(step, sequence)?.is_some() {"),
    ("state_lost_on_complete", R + "settle.rs", "workflow.set_state(self, state)?;\n        let (_, receipts)", "let _ = state;\n        let (_, receipts)"),
    ("sends_lost_on_complete", R + "settle.rs", "let (_, receipts) = self.close_and_send(workflow, token, judged)?;", "let _ = judged;\n        let (_, receipts) = self.close_and_send(workflow, token, Vec::new())?;"),
    ("expiry_ignores_successor", R + "fail.rs", "self.pass(step, &message, how)", "if how == Settled::Expired { Ok(()) } else { self.pass(step, &message, how) }"),
    ("locked_message_expires", R + "remind.rs", "if matches!(message.status, Status::Locked { .. }) {\n            return Ok(());\n        }", ""),
    ("deferred_does_not_move_on", R + "fail.rs", "if moves { self.pass(step, &message, Settled::Aside) } else { Ok(()) }", "Ok(())"),
    ("redrive_behind_its_place", R + "redrive.rs", "Ok(rank > self.record.done && !taken", "Ok(!taken"),
    ("quarantine_lets_through", R + "workflow.rs", "Some(HoldCause::Quarantine(_)) => self.record.line > out,", "Some(HoldCause::Quarantine(_)) => false,"),
    ("purge_takes_what_is_out", R + "purge.rs", "if matches!(message.status, Status::Locked { .. }) {\n            return Ok(false);\n        }", ""),
    ("cancel_after_activation", R + "send.rs", "matches!(message.status, Status::Scheduled { .. })", "!matches!(message.status, Status::Locked { .. })"),
    ("cancelled_place_blocks", R + "line.rs", "self.pass(step, message, how)\n    }", "if how == Settled::Cancelled { Ok(()) } else { self.pass(step, message, how) }\n    }"),
    ("unfair_ready_list", R + "step.rs", "Ok(numbers.next_ticket)", "Ok(u64::MAX / 2 - numbers.next_ticket)"),
    ("restart_forgets_the_count", R + "operate.rs", "workflow.fail(self, sequence, Retry::Now, \"the engine stopped while it was handed out\")?;", "workflow.give_back(self, sequence)?;"),
    ("forgotten_too_soon", R + "remind.rs", "if due > self.now || held {", "if held {"),
    ("chain_follower_lost", R + "chain.rs", "None => self.take_into_line(step, sequence, next)?,", "None => if next % 2 == 0 { return Ok(false) } else { self.take_into_line(step, sequence, next)? },"),
    ("idle_queue_with_messages_deleted", R + "queues.rs", "(empty || queue.options.delete_with_messages)", "(empty || true)"),
    ("whole_lock_not_written", R + "receive.rs", "let kept = lock.kind == LockKind::Whole || !lock.out.is_empty();", "let kept = !lock.out.is_empty();"),
    ("locks_end_in_token_order", R + "lock.rs", "(self.until, self.number, token)", "(self.until, 0, token)"),
    ("reached_of_a_batch_is_early", R + "early.rs", "for _ in 0..limits::EXTEND_MAX {", "for _ in 0..0 {"),
    ("room_of_a_command_not_used", R + "judge.rs", "Judge::with_growth(queue, -ended)", "Judge::with_growth(queue, ended - ended)"),
    ("quarantine_is_redriven", R + "redrive.rs", "if workflow.is_quarantined() {", "if false && workflow.is_quarantined() {"),
    ("operators_hold_lost", R + "workflow.rs", "!matches!(hold.cause, HoldCause::Spent(_) | HoldCause::Gap),", "true,"),
    ("unreached_links_leak", R + "chain.rs", "self.drop_links(step, mark.from, mark.to + 1)", "Ok(())"),
    ("complete_all_answers_in_another_order", R + "apply.rs", "deliveries.into_iter().map(complete)", "deliveries.into_iter().rev().map(complete)"),
    ("answer_before_commit", "src/engine/store/job.rs", "transaction.commit().map_err(store_fault)?;", "transaction.abort().map_err(store_fault)?;"),
    ("place_behind_an_id_overwritten", R + "chain.rs", "if step.records.link(&self.key, tail.as_ref())?.is_none() {", "{"),
    ("answers_leave_early", C, "        if let Some(job) = job {\n", "        let (early, release) = (release, Release::default());\n        self.let_out(early);\n        if let Some(job) = job {\n"),
    ("failed_commit_wakes_nobody", C, "self.inbox.post_at_once(Request::Wake);", ""),
    ("failed_commit_is_forgotten", C, "let fault = self.progress.failed.get_or_init(|| fault);", "let fault = &fault;"),
    ("what_is_under_way_is_overtaken", C, "let is_alone = self.is_idle();", "let is_alone = true;"),
    ("looks_overtake_their_commit", C, "if is_alone && (!more || is_small) {", "if job.is_none() || is_alone && (!more || is_small) {"),
    ("unopened_parcel_is_lost", I, "self.inbox.post_at_once(Request::GiveBack(command));\n            }\n            _ =>", "drop(command);\n            }\n            _ =>"),
    ("looked_for_and_lost", I, "self.next = self.take();\n        self.next.is_some()", "self.take().is_some()"),
    ("room_is_never_given_back", I, "_room: Some(room) }", "_room: { room.forget(); None } }"),
    ("seal_not_checked", "src/engine/store/seal.rs", "Some((payload, seal)) if seal == seal_of(table, key, payload) => Ok(payload),", "Some((payload, _)) => Ok(payload),"),
    ("tombstone_not_written", S + "change.rs", "None if stamp.is_on_disk(self.position) => Now::Deleted,", "None if stamp.based => Now::Deleted,"),
    ("folded_row_deleted_without_a_trace", S + "fold.rs", "slot.stamp.based = true;", ""),
    ("journal_dropped_before_it_is_folded", S + "store.rs", "if units_left(&shelves) == 0 {", "if units_left(&shelves) < 200 {"),
    ("changed_while_landing_is_lost", S + "fold.rs", "if group.stamp(&key).is_none_or(|stamp| stamp.position > landing.upto) {", "if group.stamp(&key).is_none() {"),
    ("epoch_not_raised", S + "open.rs", "meta.put(&name_key(EPOCH_ROW), &epoch)?;", ""),
    ("numbers_not_kept", S + "meta.rs", "meta.put(&name_key(NUMBERS_ROW), &self.numbers)?;", ""),
    ("last_folded_key_not_noted", S + "folded.rs", "            known.last = Some(key.clone());", ""),
    ("journal_seal_not_checked", S + "journal.rs", ".filter(|(bytes, seal)| xxh3_64(bytes).to_le_bytes() == **seal)", ""),
    ("row_touched_twice_keeps_the_first", S + "change.rs", "self.rows[stamp.index as usize].1 = now;", "let _ = now;"),
    ("time_not_kept", S + "turn.rs", "self.kept.batch.time = self.kept.batch.time.max(now);", ""),
    ("lock_one_ms_short", R + "receive.rs", "let until = step.now + self.queue.options.lock;", "let until = crate::clock::Timestamp::from_millis((step.now + self.queue.options.lock).as_millis() - 1);"),
    ("lock_lasts_through_its_end", E + "turn.rs", "Some((due, token)) if due <= self.now", "Some((due, token)) if due < self.now"),
    ("reminder_late_by_a_turn", E + "turn.rs", "filter(|reminder| reminder.due <= self.now)", "filter(|reminder| reminder.due < self.now)"),
    ("waiters_not_served", E + "turn.rs", "Effect::Work(queue) => drop(self.woken.insert(WaitsFor::Queue(queue))),", "Effect::Work(queue) => drop(queue),"),
    ("waiter_loses_his_place", E + "turn.rs", "self.wakeups.put_back(place, waiter);", "drop((place, waiter));"),
    ("retry_reminder_forgotten", R + "line.rs", "self.move_reminder(step, &Remind::Due(sequence), before.and_then(due_of), due_of(&after))?;", "self.move_reminder(step, &Remind::Due(sequence), before.and_then(due_of), None)?;"),
    ("expiry_reminder_forgotten", R + "line.rs", "self.move_reminder(step, &Remind::Expiry(sequence), before.and_then(expiry_of), expiry_of(&after))?;", ""),
    ("deferral_without_its_end", R + "fail.rs", "message.status = Status::Asked { due: until, aside };", "message.status = Status::Asked { due: until.filter(|_| false), aside };"),
    ("everybody_settles_apart", R + "settle.rs", "step.locks.get(token).is_some_and(|lock| lock.is_apart)\n            && options", "options"),
    ("void_claim_is_heard", R + "hide.rs", "|| message.handed_out_at != claim.at", ""),
    ("hidden_is_not_counted", R + "hide.rs", "record.delivery_count += 1;", ""),
    ("ended_claim_is_cancelled", R + "hide.rs", "message.delivery_count == 0 { Settled::Cancelled }", "message.delivery_count <= 1 { Settled::Cancelled }"),
    ("failed_deferral_keeps_its_instant", R + "fail.rs", "Status::Asked { due: due.or(back), aside: true }", "Status::Asked { due: back.or(due), aside: true }"),
    ("fetched_loses_its_deferral", R + "fail.rs", "Some(Deferred { due, aside }) => Status::Asked { due, aside },", "Some(Deferred { aside, .. }) => Status::Asked { due: None, aside },"),
    ("window_one_ms_short", R + "send.rs", "let until = self.now + window;", "let until = crate::clock::Timestamp::from_millis((self.now + window).as_millis() - 1);"),
    ("number_given_twice", R + "step.rs", "self.numbers()?.next_sequence = next + 1;", "self.numbers()?.next_sequence = next + u64::from(!next.is_multiple_of(7));"),
    ("cursor_passes_two", R + "order.rs", "self.record.cursor = to + 1;", "self.record.cursor = to + 2;"),
    ("recovery_takes_back_one", R + "operate.rs", "for sequence in holding.out {\n            workflow.fail", "for sequence in holding.out.into_iter().take(1) {\n            workflow.fail"),
    ("renewed_lock_never_ends", R + "lock.rs", "lock.until = until;\n        self.deadlines.insert(lock.deadline(token));", "lock.until = until;"),
    ("gap_is_timed_anew_by_each", R + "gap.rs", "!waiting || gap.at != self.record.through", "!waiting || gap.at != self.record.through || gap.due.is_some()"),
    ("one_early_too_few", R + "early.rs", "self.early + self.unfollowed_early <= options.early_max", "self.early + self.unfollowed_early < options.early_max"),
    ("queue_full_one_too_early", R + "judge.rs", "> queue.options.messages_max {", ">= queue.options.messages_max {"),
    ("one_place_too_many_given_up", R + "gap.rs", "self.give_up(step, from, waiting - 1, Settled::Skipped)?;", "self.give_up(step, from, waiting, Settled::Skipped)?;"),
    ("spent_for_itself_is_held", R + "fail.rs", "Stream::Single(_) => Spent::Skip,", "Stream::Single(_) => self.queue.options.spent_policy(),"),
    ("dead_letter_not_delisted", R + "redrive.rs", "self.list_dead_letter(step, sequence, before, false)?;\n        let mut message", "let mut message"),
    ("lock_freed_with_messages_out", R + "settle.rs", "if lock.kind == LockKind::Deliveries && lock.out.is_empty() {", "if lock.kind == LockKind::Deliveries {"),
    ("holding_not_written", R + "receive.rs", "self.write_holding(step, token)?;\n        let content", "let content"),
    ("purge_not_counted", R + "line.rs", "Settled::Purged => counts.purged += 1,", "Settled::Purged => counts.expired += 1,"),
    ("time_follows_the_clock_back", E + "writer.rs", "self.clock.now().max(self.store.time()).max(self.time)", "self.clock.now()"),
    ("time_forgotten_over_restart", E + "writer.rs", "self.clock.now().max(self.store.time()).max(self.time)", "self.clock.now().max(self.time)"),
    ("turn_without_its_instant", E + "writer.rs", "            turn.stamp(now);\n", ""),
    ("failed_commit_is_answered", E + "commits.rs", "self.refuse(release, fault);\n                // The hot loop", "self.let_out(release);\n                // The hot loop"),
    ("waiter_waits_too_long", E + "wakeups.rs", "self.deadlines.iter().take_while(|(until, _)| *until <= elapsed)", "self.deadlines.iter().take_while(|(until, _)| *until < elapsed)"),
    ("due_work_waits_for_a_request", E + "writer.rs", "!asked.is_empty() || self.next_due.is_some_and(|due| due <= self.time)", "!asked.is_empty()"),
    ("nothing_given_back_after_a_restart", E + "writer.rs", "(0..limits::SWEEP_MAX).map(|_| Asked::unattended(Command::Recover))", "(0..0).map(|_: usize| Asked::unattended(Command::Recover))"),
    ("deletion_not_folded", S + "fold.rs", "None => Now::Deleted,", "None => continue,"),
    ("last_commit_of_a_generation_not_folded", S + "fold.rs", "stamp.is_some_and(|stamp| stamp.position <= upto)", "stamp.is_some_and(|stamp| stamp.position < upto)"),
    ("generation_dropped_too_early", S + "store.rs", "if units_left(&shelves) == 0 {", "if units_left(&shelves) == 0 || job.position.is_multiple_of(5) {"),
    ("landed_before_the_commit", S + "fold.rs", "landing.position <= position)", "landing.position <= position + 1)"),
    ("numbers_not_replayed", S + "replay.rs", "self.kept.numbers = numbers;", "let _ = numbers;"),
    ("tallies_not_replayed", S + "replay.rs", "self.kept.tallies.extend(tallies);", "let _ = tallies;"),
    ("time_not_replayed", S + "replay.rs", "Ok(BatchRecord { position, hash: seal, time })", "let _ = time;\n        Ok(BatchRecord { position, hash: seal, time: crate::clock::Timestamp::default() })"),
    ("epoch_used_twice", S + "open.rs", "last_epoch.checked_add(1)", "Some(last_epoch.max(1))"),
    ("journal_dropped_through_too_far", S + "journal.rs", "let end = key_of_piece(position, u32::MAX);", "let end = key_of_piece(position + 1, u32::MAX);"),
    ("answer_not_kept", R + "once.rs", "self.keep_answer(queue, key, receipts.clone())?;", ""),
    ("another_request_is_answered_as_the_first", R + "once.rs", "match known.digest == key.digest() {", "match true {"),
    ("forgotten_answer_is_still_counted", R + "once.rs", "self.write(Change::AnswerCount(queue, (left > 0).then_some(left)))?;", "let _ = left;"),
    ("refused_operator_is_not_written_down", R + "on_record.rs", "let number = self.write_down(entry, begun)?;", "if entry.refusal.is_some() {\n            return Ok(reply);\n        }\n        let number = self.write_down(entry, begun)?;"),
    ("each_step_of_a_purge_is_an_entry", R + "on_record.rs", "begun.filter(|begun| begun.is_same_work(&entry))", "begun.filter(|_| false)"),
    ("lock_is_not_renewed", P + "locks.rs", "tokio::spawn(lock.keep(self.client.clone(), self.renew_for));", "drop(lock);"),
    ("renewal_waits_for_a_busy_thread", P + "locks.rs", "            tokio::task::yield_now().await;\n", ""),
    ("busy_handler_is_never_ended", P + "invocation.rs", "lost = unconstrained(lock.lost())", "lost = lock.lost()"),
    ("completed_one_by_one", P + "settling.rs", "coming.recv_many(&mut come, limits::COMPLETE_ALL_MAX)", "coming.recv_many(&mut come, 1)"),
    ("taker_is_not_told_of_a_lost_lock", P + "locks.rs", "            taker.cancel(self.number);\n", "            let _ = taker;\n"),
    ("lost_assignment_is_never_given_up", P + "locks.rs", "            taker.give_up(self.number);\n", "            let _ = taker;\n"),
    ("taken_is_not_given_up_after_the_drain", P + "pool.rs", "            drop(taken);\n", "            std::mem::forget(taken);\n"),
    ("only_what_is_done_is_settled", P + "single.rs", "for done in others {", "for done in others.into_iter().take(0) {"),
    ("assignment_let_fall_says_nothing", P + "taker.rs", "if self.tell.is_some() {", "if false {"),
]

# The tests, those that catch most first; a bug that is caught is not tried with the others.
TARGETS = [["--lib"], ["--test", "scripts", "--test", "model", "--test", "promises"]]

# All bugs are in the library alone, which builds in a fraction of the time.
LIBRARY = ["--no-default-features"]

# Much is built and little is run: without optimisation, and a part of what the tests usually try.
ENVIRONMENT = {
    "CARGO_PROFILE_TEST_OPT_LEVEL": "0",
    "RUST_BACKTRACE": "0",
    "RUSTFLAGS": "-Awarnings",
    "SERIATIM_SEEDS": "40",
    "SERIATIM_SIMULATION_SEEDS": "200",
    "SERIATIM_SIMULATION_DISK_SEEDS": "24",
    "SERIATIM_SIMULATION_TWICE": "2",
    "SERIATIM_SCHEDULES": "8000",
}


def main():
    wanted = set(sys.argv[1:])
    root = pathlib.Path(__file__).resolve().parents[2]
    survivors, started = [], time.monotonic()
    bugs = [bug for bug in BUGS if not wanted or bug[0] in wanted]
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder) / "copy"
        subprocess.run(["git", "clone", "-q", str(root), str(copy)], check=True)
        for number, (name, path, before, after) in enumerate(bugs, 1):
            outcome = plant(copy, path, before, after)
            print(f"{number:3}/{len(bugs)} {name:36} {outcome}", flush=True)
            if not outcome.startswith("caught"):
                survivors.append(name)
    print(f"{len(bugs) - len(survivors)} of {len(bugs)} caught in {time.monotonic() - started:.0f} s")
    sys.exit(1 if survivors else 0)


def plant(copy, path, before, after):
    """Plants one bug, runs the suite, and takes the bug out again."""
    file = copy / path
    text = file.read_text()
    if text.count(before) != 1:
        return f"NOT PLANTED: its place stands {text.count(before)} times in {path}"
    file.write_text(text.replace(before, after))
    env = dict(os.environ, CARGO_TARGET_DIR=str(copy.parent / "target"), **ENVIRONMENT)
    try:
        for targets in TARGETS:
            built = run(["cargo", "test", "-q", "--no-run", *LIBRARY, *targets], copy, env)
            if built is None or built.returncode != 0:
                return "NOT BUILT: " + (built.stderr.strip().splitlines() or ["?"])[0] if built else "NOT BUILT"
            tested = run(["cargo", "test", "-q", *LIBRARY, *targets], copy, env)
            if tested is None:
                return f"caught by {targets[-1]}, which hung"
            if tested.returncode != 0:
                return f"caught by {targets[-1]}"
        return "SURVIVED"
    finally:
        file.write_text(text)


def run(command, copy, env):
    """Runs a command in a process group of its own, so that a bug that loops for ever can be ended."""
    pipes = dict(stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    child = subprocess.Popen(command, cwd=copy, env=env, start_new_session=True, **pipes)
    try:
        stdout, stderr = child.communicate(timeout=300)
        return subprocess.CompletedProcess(command, child.returncode, stdout, stderr)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        child.communicate()
        return None


if __name__ == "__main__":
    main()
