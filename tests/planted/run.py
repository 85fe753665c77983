#!/usr/bin/env python3
"""Plants bugs into rules, writer, store, processor and daemon, one at a time, and checks that the suite catches each.

Usage: python3 tests/planted/run.py [NAME ...]
       python3 tests/planted/run.py --places

Works on a copy of the committed tree in a temporary folder. Prints a line a bug and exits with 1 if one survives.
With --places it plants nothing, and exits with 1 if a bug has lost its place in the sources, as it does when code moves.
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
D = "src/daemon/"
B = "src/service_bus/"
H = "src/handlers/"
K = "src/cluster/"
# name, file, what stands there, what is planted
BUGS = [
    ("retry_one_ms_early", R + "fail.rs", "(!due.is_past(step.clocks())).then_some(due)", "(!due.is_past(step.clocks())).then_some(Due::from_bits(due.bits() - 1))"),
    ("renewed_from_the_old_end", R + "settle.rs", "let until = self.now + queue.options.lock;\n        self.locks.renew(token, until);", "let until = self.now;\n        self.locks.renew(token, until);"),
    ("spent_one_too_late", R + "fail.rs", "deliveries >= self.queue.options.delivery_count_max", "deliveries > self.queue.options.delivery_count_max"),
    ("count_not_kept_on_release", R + "fail.rs", "|message| message.delivery_count -= 1)", "|_| ())"),
    ("hand_out_not_counted", R + "receive.rs", "message.count_hand_out();", ""),
    ("early_is_offered", R + "workflow.rs", "Status::Ready if !self.is_early(&message)", "Status::Ready"),
    ("held_is_offered", R + "workflow.rs", "_ if self.is_held() => false,", "_ if self.is_held() && holder.is_some() => false,"),
    ("failed_head_is_jumped", R + "workflow.rs", "Status::Locked { .. } => (from, is_behind) = (rank + 1, true),", "Status::Locked { .. } | Status::Failed { .. } => (from, is_behind) = (rank + 1, true),"),
    ("completed_ahead_not_passed", R + "order.rs", "self.pass_marks(step)?;\n        // What", "// What"),
    ("skipped_not_remembered", R + "order.rs", "!matches!(how, SettlementKind::Completed | SettlementKind::Aside)", "!matches!(how, SettlementKind::Completed | SettlementKind::Aside | SettlementKind::Skipped)"),
    ("gap_reminder_forgotten", R + "gap.rs", "since, due: Some(due) });\n        step.set_reminder(due, self.key.queue, Remind::Gap(self.key.stream.clone()))", "since, due: Some(due) });\n        Ok(())"),
    ("gap_given_up_whole", R + "order.rs", "for _ in 0..limits::SWEEP_MAX {\n            if next > to", "for _ in 0..usize::MAX {\n            if next > to"),
    ("passing_extends_further", R + "order.rs", "if self.is_extending() { Ok(()) } else { self.extend(step) }", "if self.record.rare.shortening.is_some() { Ok(()) } else { self.extend(step) }"),
    ("passing_shortens_further", R + "order.rs", "if self.is_extending() { Ok(()) } else { self.extend(step) }", "if self.record.rare.extending { Ok(()) } else { self.extend(step) }"),
    ("what_follows_a_cancelled_end_is_no_root", R + "shorten.rs", "            self.part_from_follower(step, &chained_id(message))?;\n", ""),
    ("own_dead_letter_not_offered", R + "settle.rs", "            self.offer_own_dead_letter(step)?;\n", ""),
    ("delay_by_the_wall_clock", R + "due.rs", "Due::engine(now.engine + span)", "Due::wall(now.wall + span)"),
    ("fetched_though_hidden_by_its_sender", R + "receive.rs", "aside || message.delivery_count > 0", "aside || message.delivery_count < u32::MAX"),
    ("gap_judged_before_it_is_reached", R + "gap.rs", "if stays || !is_there || self.is_before_gap(step)? {", "if stays || !is_there {"),
    ("gap_judged_between_sends", R + "incoming.rs", "destination.workflow.close_with(step, destination.head)?", "destination.workflow.close(step)?"),
    ("gap_judged_too_early", R + "gap.rs", "self.record.rare.gap.filter(|gap| gap.due.is_none())", "self.record.rare.gap"),
    ("late_is_accepted_twice", R + "judge.rs", "Ok(if rank < self.record.cursor { PlaceUse::Completed }", "Ok(if rank + 1 < self.record.cursor { PlaceUse::Completed }"),
    ("window_is_closed", R + "judge.rs", "step.now < known.until", "step.now <= known.until"),
    ("taken_place_is_overwritten", R + "judge.rs", "if same { Ok(Verdict::Duplicate(by)) } else", "if same { Ok(Verdict::Duplicate(by)) } else if true { Ok(Verdict::Accept) } else"),
    ("rest_of_a_run_is_counted", R + "settle.rs", "                self.give_back(step, *sequence)?;", "                self.fail(step, *sequence, crate::engine::rules::command::Retry::Now, Why::of(\"rest\"))?;"),
    ("later_ones_not_revoked", R + "settle.rs", "&& self.is_in_line(step, sequence)?);", "&& self.is_in_line(step, sequence)? && self.is_held());"),
    ("state_lost_on_complete", R + "settle.rs", "workflow.set_state(self, state)?;\n        let queue", "let _ = state;\n        let queue"),
    ("sends_lost_on_complete", R + "settle.rs", "let (_, receipts) = self.close_and_send(workflow, token, judged)?;", "let _ = judged;\n        let (_, receipts) = self.close_and_send(workflow, token, Vec::new())?;"),
    ("expiry_ignores_successor", R + "fail.rs", "self.pass(step, &message, how)", "if how == SettlementKind::Expired { Ok(()) } else { self.pass(step, &message, how) }"),
    ("locked_message_expires", R + "remind.rs", "if matches!(message.status, Status::Locked { .. }) {\n            return Ok(());\n        }", ""),
    ("deferred_does_not_move_on", R + "fail.rs", "if moves { self.pass(step, &message, SettlementKind::Aside) } else { Ok(()) }", "Ok(())"),
    ("redrive_behind_its_place", R + "redrive.rs", "Ok(rank > self.record.done && !taken", "Ok(!taken"),
    ("quarantine_lets_through", R + "workflow.rs", "let quarantines = holds.has(HoldKind::Quarantine) && self.record.line > out;", "let quarantines = false && self.record.line > out;"),
    ("purge_takes_what_is_out", R + "purge.rs", "if matches!(message.status, Status::Locked { .. }) {\n            return Ok(false);\n        }", ""),
    ("cancel_after_activation", R + "schedule.rs", "Status::Scheduled { due } => Some(due),", "Status::Scheduled { due } => Some(due),\n            Status::Ready => Some(Due::wall(self.wall)),"),
    ("cancelled_place_is_settled", R + "schedule.rs", "match void || !workflow.has_places() {", "match void || workflow.exists() {"),
    ("rescheduled_lives_from_the_old_instant", R + "schedule.rs", "Due::wall(begins + expiry.at().since(before_due.at()))", "expiry"),
    ("given_back_place_is_jumped", R + "shorten.rs", "self.record.rare.shortening = Some(Shortening { rank, after: message.rare.after.clone() });", "self.record.rare.extending = true;"),
    ("offered_while_a_run_is_shortened", R + "workflow_record.rs", "rank > self.through || self.rare.shortening.as_ref().is_some_and(|missing| rank > missing.rank)", "rank > self.through"),
    ("cancelled_place_blocks", R + "line.rs", "self.pass(step, message, how)\n    }", "if how == SettlementKind::Cancelled { Ok(()) } else { self.pass(step, message, how) }\n    }"),
    ("unfair_ready_list", R + "step.rs", "Ok(numbers.next_ticket)", "Ok(u64::MAX / 2 - numbers.next_ticket)"),
    ("restart_forgets_the_count", R + "operate.rs", "self.fail(step, sequence, Retry::Now, Why::of(reason))?;", "self.give_back(step, sequence)?;"),
    ("forgotten_too_soon", R + "remind.rs", "if due > self.now || is_busy {", "if is_busy {"),
    ("chain_follower_lost", R + "chain.rs", "None => self.take_into_line(step, sequence, next)?,", "None => if next % 2 == 0 { return Ok(false) } else { self.take_into_line(step, sequence, next)? },"),
    ("idle_queue_with_messages_deleted", R + "queues.rs", "(empty || queue.options.delete_with_messages)", "(empty || true)"),
    ("whole_lock_not_written", R + "lock.rs", "self.kind != LockKind::Whole && self.out.is_empty()", "self.out.is_empty()"),
    ("locks_end_in_another_order", "src/deadlines.rs", "Err(place) => together.insert(place, (number, Some(what))),", "Err(_) => together.push_back((number, Some(what))),"),
    ("reached_of_a_batch_is_early", R + "early.rs", "for _ in 0..limits::EXTEND_MAX {", "for _ in 0..0 {"),
    ("room_of_a_command_not_used", R + "judge.rs", "BTreeMap::from([(queue, -count)])", "BTreeMap::from([(queue, count - count)])"),
    ("quarantine_is_redriven", R + "redrive.rs", "if workflow.is_quarantined() {", "if false && workflow.is_quarantined() {"),
    ("operators_hold_lost", R + "holds.rs", "self.0.retain(|hold| hold.cause.kind() != kind);", "self.0.clear();"),
    ("hold_for_a_gap_outlives_it", R + "gap.rs", "            self.lift_hold(step, HoldKind::Gap)?;\n", ""),
    ("follower_stays_a_root", R + "chain.rs", "step.write(Change::Root(self.key.clone(), follower, false))?;", "let _ = follower;"),
    ("successor_of_a_stray_is_no_stray", R + "chain.rs", "Some(follower) => step.write(Change::Root(self.key.clone(), follower, true)),", "Some(_) => Ok(()),"),
    ("settled_ahead_of_the_chain_not_marked", R + "chain.rs", "self.mark(step, next, next, how)?;", ""),
    ("end_of_the_chain_not_moved", R + "chain.rs", "self.record.rare.tail = link.message_id.clone();", ""),
    ("scheduled_stray_is_given_up", R + "chain.rs", "if matches!(message.status, Status::Ready) {\n                return Ok(Some((root, message)));", "if message.rank.is_none() {\n                return Ok(Some((root, message)));"),
    ("id_at_the_end_of_the_chain_is_taken_twice", R + "chain.rs", "return Ok(Some(self.record.through));", "return Ok(None);"),
    ("links_outlive_their_workflow", R + "chain.rs", "if let Some((rank, entry)) = step.records.trail_from(&self.key, self.first_rank() + 1)? {", "if let Some((rank, entry)) = step.records.trail_from(&self.key, u64::MAX)? {"),
    ("chain_is_never_followed", R + "order.rs", "if self.is_chained() {\n            return self.extend_chain(step, next);", "if self.is_chained() && next > 1 {\n            return Ok(false);"),
    ("end_of_a_shortened_chain_stays", R + "shorten.rs", "self.record.rare.tail = missing.after;", "let _ = missing.after;"),
    ("cancelled_link_stays", R + "shorten.rs", "step.write(Change::Link(self.key.clone(), message.rare.after.clone(), None))?;", ""),
    ("missing_predecessor_finds_no_room", R + "judge.rs", "Ok(follower.as_ref().is_some_and(waits))", "Ok(follower.as_ref().is_some_and(waits) && false)"),
    ("stray_waits_by_the_wall", R + "send.rs", "if workflow.is_chained() { step.now } else { step.wall }", "step.wall"),
    ("unreached_links_leak", R + "chain.rs", "step.write(Change::Trail(self.key.clone(), place, trail))", "let _ = trail;\n        Ok(())"),
    ("complete_all_answers_in_another_order", R + "complete.rs", "for held in deliveries {", "for held in deliveries.into_iter().rev() {"),
    ("answer_before_commit", S + "local_log.rs", "transaction.commit().map_err(store_fault)?;\n            freed.keep", "transaction.abort().map_err(store_fault)?;\n            freed.keep"),
    ("answers_leave_early", C, "        if let Some(last) = jobs.last() {\n", "        let (early, release) = (release, Release::default());\n        self.publish(early);\n        if let Some(last) = jobs.last() {\n"),
    ("failed_commit_wakes_nobody", C, "self.inbox.post_at_once(Request::Wake);", ""),
    ("failed_commit_is_forgotten", C, "let fault = self.progress.failed.get_or_init(|| fault);", "let fault = &fault;"),
    ("what_is_under_way_is_overtaken", C, "if is_small && self.is_idle() {\n            return self.commit_now(job, release);", "if is_small {\n            return self.commit_worker.commit(CommitGroup::new(job, release));"),
    ("looks_overtake_their_commit", C, "if is_small && self.is_idle() {\n            return self.commit_now(job, release);", "if job.is_none() || is_small && self.is_idle() {\n            return self.commit_worker.commit(CommitGroup::new(job, release));"),
    ("unopened_parcel_is_lost", E + "letter.rs", "verb.give_back(done, post);", "drop((verb, done, &post));"),
    ("answer_left_on_its_way_is_lost", E + "letter.rs", "verb.give_back(done, &mut self.post);", "drop((verb, done, &mut self.post));"),
    ("whoever_is_left_out_waits_for_ever", E + "letter.rs", "    fn drop(&mut self) {\n        self.0.lose();\n    }", "    fn drop(&mut self) {}"),
    ("answer_wakes_nobody", E + "letter.rs", "    wakers.into_iter().for_each(Waker::wake);", "    drop(wakers.into_iter());"),
    ("waker_of_before_is_kept", E + "letter.rs", "Some(waker) => waker.clone_from(context.waker()),", "Some(_) => {}"),
    ("margin_is_cleared_and_not_journaled", S + "local_log.rs", "before.iter().map(MarginRow::entry).chain(entries.iter().copied())", "before.iter().take(0).map(MarginRow::entry).chain(entries.iter().copied())"),
    ("margin_where_the_disk_has_no_room_to_spare", S + "job.rs", "(None, [job]) if job.is_row_alone() && is_roomy =>", "(None, [job]) if job.is_row_alone() || is_roomy && job.is_row_alone() =>"),
    ("margin_in_use_is_not_said", S + "local_log.rs", "put_format(&transaction, schema::FORMAT_WITH_MARGIN)?", "put_format(&transaction, schema::FORMAT)?"),
    ("margin_is_not_synced", S + "shared_file.rs", "self.write(offset, data).and_then(|()| self.sync_data());", "self.write(offset, data);"),
    ("redb_closes_after_a_sync_of_the_margin_failed", S + "shared_file.rs", "            self.is_given_up.store(true, Ordering::Release);\n", ""),
    ("margin_of_an_earlier_round_is_damage", S + "margin.rs", "if position <= last.position || (row.round != self.round && page > 0) {", "if row.round != self.round && page > 0 {"),
    ("margin_believes_a_body", S + "margin.rs", " || (row.round != self.round && page > 0) {", " {"),
    ("margin_damage_passes_for_a_crash", S + "margin.rs", "return Err(damaged(&JOURNAL, \"a row is missing before one at the front of the file\"));", "page += 1;"),
    ("margin_round_stays", S + "margin.rs", "self.round = journal_row::checksum_of(last);", "let _ = journal_row::checksum_of(last);"),
    ("margin_writes_over_redb", S + "margin.rs", "self.is_in_use() && row.len() <= ROW_BYTES_MAX && has_room", "self.is_in_use() && row.len() <= ROW_BYTES_MAX && (has_room || self.pages > 0)"),
    ("margin_takes_a_change_of_a_queue", S + "job.rs", "begins_epoch.is_none() && queue_changes.is_empty() && flushed.is_empty()", "begins_epoch.is_none() && (queue_changes.len() < 9) && flushed.is_empty()"),
    ("margin_takes_a_flush", S + "job.rs", "queue_changes.is_empty() && flushed.is_empty() && ended.is_none()", "queue_changes.is_empty() && (flushed.len() < 9) && ended.is_none()"),
    ("backup_misses_the_margin", S + "job.rs", "Snapshot::new(transaction, self.local.rows_in_margin())", "Snapshot::new(transaction, Vec::new())"),
    ("margin_goes_on_after_a_failed_commit", S + "local_log.rs", "(Some(margin), Err(_)) => margin.stop(),", "(Some(_), Err(_)) => {}"),
    ("compact_leaves_the_margin_in_use", S + "compact.rs", "        self.margin = None;\n", ""),
    ("margin_stays_in_a_closed_file", S + "store.rs", "let closed = self.guard(|store| store.committer().end_margin());", "let closed = self.guard(|_| Ok(()));"),
    ("strict_commit_goes_to_the_margin", S + "open.rs", "margin.filter(|_| !options.strict)", "margin.filter(|_| options.generations > 0)"),
    ("what_a_crash_left_in_the_margin_is_forgotten", S + "open.rs", "            margin.put_into_journal(&transaction)?;\n", ""),
    ("new_file_begins_with_its_header", S + "margin.rs", "chunks(PAGE).enumerate().skip(1)", "chunks(PAGE).enumerate()"),
    ("verify_passes_over_the_margin", S + "inspect.rs", "(Some(margin), Some(last)) => match margin", "(Some(margin), Some(last)) if !self.path.exists() => match margin"),
    ("freed_pages_are_never_given_back", S + "local_log.rs", "            *self = FreedPages::default();\n", "            (self.commits, self.bytes) = (0, 0);\n"),
    ("pages_of_large_commits_wait", S + "local_log.rs", " || self.bytes >= limits::BYTES_KEEP_PAGES", ""),
    ("pages_of_a_generation_wait", S + "local_log.rs", "        *self.freed.lock() = FreedPages::default();\n", "        drop(self.freed.lock());\n"),
    ("journal_row_is_not_chained", S + "store.rs", "        self.meta.batch.hash = checksum;\n", ""),
    ("zero_ends_a_text", S + "key.rs", "match has_zero(text) {", "match false {"),
    ("places_of_locks_that_have_ended_stay", "src/deadlines.rs", "        while let Some((_, None)) = together.front() {\n            together.pop_front();\n        }\n", ""),
    ("room_is_never_given_back", I, "self.freed += queued.places;", ""),
    ("room_is_given_back_twice", I, "let freed = std::mem::take(&mut self.freed);", "let freed = self.freed;"),
    ("checksum_not_checked", "src/engine/store/checksum.rs", "Some((payload, checksum)) if checksum == checksum_of(table, key, payload) => Ok(payload),", "Some((payload, _)) => Ok(payload),"),
    ("tombstone_not_written", S + "table_changes.rs", "let is_on_disk = stamp.is_on_disk(self.position);", "let is_on_disk = stamp.is_based();"),
    ("flushed_row_deleted_without_a_trace", S + "flush.rs", "slot.stamp.set_based();", ""),
    ("journal_dropped_before_it_is_flushed", S + "store.rs", "if self.units_left() == 0 {", "if self.units_left() < 200 {"),
    ("changed_while_under_way_is_lost", S + "flush.rs", "if group.stamp(&key).is_none_or(|stamp| stamp.position() > row.upto) {", "if group.stamp(&key).is_none() {"),
    ("answer_of_a_plain_completion_is_forgotten", R + "settlements.rs", "match digest == PLAIN && first.is_none() && *reply == SettleResult::default() {", "match digest == PLAIN && first.is_none() {"),
    ("many_rows_of_a_line_are_not_seen", S + "line_rows.rs", "        if !self.many.is_empty() {\n            return self.many.first(from);\n        }\n", ""),
    ("slot_of_another_is_taken_for_the_last", "src/lookup.rs", "Some(Some((known, _))) if known == key => Some(recent),", "Some(Some(_)) => Some(recent),"),
    ("given_up_slot_is_found_again", "src/lookup.rs", "                self.by_key.remove(&key);\n", ""),
    ("new_row_is_missing_in_its_order", S + "slots.rs", "            keys.note(key);\n", "            let _ = keys;\n"),
    ("row_that_is_gone_ends_an_order", S + "slots.rs", "            keys.remove(&next);\n", "            return None;\n"),
    ("message_is_given_up_with_its_content", S + "message_slots.rs", "self.record.is_empty() && self.content.is_empty()", "self.record.is_empty()"),
    ("workflow_is_given_up_with_its_line", S + "workflow_slots.rs", "self.record.is_empty() && self.line.is_empty()", "self.record.is_empty()"),
    ("flushed_row_is_seen_behind_a_deleted_one", S + "slots.rs", ".is_some_and(|group| group.shadows(&()))", ".is_some_and(|group| group.rows.contains(&()))"),
    ("row_moves_in_a_long_line", S + "line_rows.rs", "            Err(_) => self.many.insert(key, value),\n", "            Err(_) => {}\n"),
    ("workflow_is_open_twice", R + "complete.rs", "if !is_done || endings", "if endings"),
    ("workflow_is_offered_while_it_is_open", R + "receive.rs", "            workflow.withdraw_offer(self)?;\n", ""),
    ("too_many_hand_outs_are_forgotten", R + "receive.rs", "            if waiting.granted.len() == at_once {\n                waiting.hand_out(self, &mut handed)?;\n", "            if waiting.granted.len() == at_once {\n                waiting.granted.clear();\n"),
    ("delivery_ends_twice_in_one_batch", R + "complete.rs", "self.locks.take_back(held.token, held.sequence).is_done()", "true"),
    ("rate_is_not_counted_before_the_next_is_found", R + "receive.rs", "if queue.options.rate.is_some() { 1 }", "if queue.options.rate.is_some() { limits::SIDE_BY_SIDE_MAX }"),
    ("arrival_finds_its_workflow_open", R + "incoming.rs", "self.workflows.iter().any(|other| other.mark == mark)", "self.workflows.iter().any(|other| other.mark == mark) && false"),
    ("number_of_an_arrival_is_given_again", R + "incoming.rs", "next_sequences(destination.messages)", "next_sequences(destination.messages - 1)"),
    ("second_place_of_a_command_is_free", R + "judge.rs", "_ => self.others.get(place),", "_ => None,"),
    ("refused_send_of_a_completion_is_counted_from_its_queue", R + "settle.rs", "refusal.behind(before)", "refusal.behind(0)"),
    ("deleted_ballast_goes_on_counting", S + "room.rs", "if state.ballast == Ballast::There && !self", "if false && !self"),
    ("write_that_found_no_room_is_not_believed", S + "room.rs", "if has_made_some && is_contradicted {", "if false {"),
    ("what_a_quota_leaves_is_not_counted_down", S + "room.rs", "if state.ballast == Ballast::Making || state.doubted_for > 0 {", "if state.ballast == Ballast::Making {"),
    ("ballast_without_blocks_counts", S + "ballast.rs", "about.len().min(about.blocks().saturating_mul(BLOCK_BYTES))", "about.len()"),
    ("what_trials_took_is_never_given_back", S + "memtables.rs", "if self.taken_back > limits::TAKEN_BACK_MAX {", "if false {"),
    ("flushed_workflow_is_not_known", S + "records.rs", "            if let Some(record) = record {\n                room.clone_from(record);\n                return Ok(true);\n            }", "            let is_known = record.is_some();\n            *room = record.cloned().unwrap_or_default();\n            if is_known || !is_known {\n                return Ok(is_known);\n            }"),
    ("large_number_is_put_as_a_small_one", S + "encoder.rs", "if number >> WORD_BITS > 0 {", "if number >> WORD_BITS > 1 {"),
    ("lock_that_has_ended_runs_out_all_the_same", "src/deadlines.rs", "find(together, number).ok().and_then(|place| together[place].1.take());", "find(together, number).ok().and_then(|_| None);"),
    ("end_of_a_line_is_not_written", R + "incoming.rs", "(true, _) => destination.workflow.close_behind(step)?,", "(true, _) => drop(destination.workflow),"),
    ("end_of_a_line_is_another_workflows", R + "incoming.rs", "last.is_behind && last.workflow.key.stream == stream", "last.is_behind"),
    ("place_joins_the_end_of_a_line", R + "workflow.rs", "!self.has_places() && self.record.ticket.is_some()", "self.record.ticket.is_some()"),
    ("last_of_a_run_is_forgotten", R + "held_messages.rs", "self.first = self.rest.as_mut().and_then(|rest| rest.pop_front());", "self.first = None;"),
    ("run_is_settled_from_its_end", R + "held_messages.rs", "and_then(|rest| rest.pop_front())", "and_then(|rest| rest.pop_back())"),
    ("any_message_is_taken_for_the_head", R + "incoming.rs", "if workflow.record.line == 1 &&", "if workflow.record.line >= 1 &&"),
    ("gap_that_is_closed_stays", R + "gap.rs", "if self.record.early == 0 && self.record.rare.if_set().is_none() {", "if self.record.early == 0 {"),
    ("full_turn_passes_more_expired_heads", R + "receive.rs", "while *expired_max > 0 && !self.records.is_full() {", "while *expired_max > 0 {"),
    ("full_turn_quarantines_more", R + "purge.rs", "if moved > 0 && step.records.is_full() {", "if moved == limits::SWEEP_MAX && step.records.is_full() {"),
    ("first_link_is_forgotten_first", R + "chain.rs", "if let Some((rank, entry)) = step.records.trail_from(&self.key, self.first_rank() + 1)? {", "if let Some((rank, entry)) = step.records.trail_from(&self.key, 0)? {"),
    ("whatever_is_at_the_head_is_skipped", R + "operate.rs", "meant.filter(|meant| *meant != sequence)", "meant.filter(|meant| *meant > sequence)"),
    ("what_is_revoked_loses_its_deferral", R + "revoked.rs", "message.status = Status::of_unstarted(fetched);", "message.status = Status::of_unstarted(fetched.filter(|_| false));"),
    ("bodies_that_are_written_again_weigh_nothing", R + "holders.rs", "Some(_) => Ok(attempts + records.content(key)?.map_or(0, |content| content.len())),", "Some(_) => Ok(attempts),"),
    ("what_is_due_now_is_due_later", "src/deadlines.rs", "&& *together.key() <= instant", "&& *together.key() < instant"),
    ("holder_is_not_asked_for", R + "workflow.rs", "            KnownHolder::Unknown => step.locks.of(&self.key)?,", "            KnownHolder::Unknown => return None,"),
    ("rare_fields_are_thrown_away", "src/seldom.rs", "self.0.take_if(|fields| **fields == *T::blank());", "self.0.take_if(|fields| !std::mem::needs_drop::<T>() || **fields != *T::blank());"),
    ("rare_fields_are_never_compared", "src/seldom.rs", "Some(other)) if Arc::ptr_eq(one, other) => true,", "Some(other)) if Arc::ptr_eq(one, other) || true => true,"),
    ("rare_fields_are_not_compared", "src/seldom.rs", "_ => **self == **other,", "_ => self.0.is_none() == other.0.is_none(),"),
    ("small_bodies_lie_over_each_other", "src/engine/client/bodies.rs", "message.body = block.split().freeze();", "message.body = block.clone().freeze();"),
    ("large_body_is_copied_too", "src/engine/client/bodies.rs", "        if bytes == 0 {\n            continue;\n        }\n", ""),
    ("one_block_for_all_bodies", "src/engine/client/bodies.rs", "BytesMut::with_capacity(left.min(limits::BODY_BLOCK_BYTES))", "BytesMut::with_capacity(left)"),
    ("standing_workflow_is_not_known_again", S + "standing.rs", "self.lookup.remove(id).is_some() && self.names.remove(id)", "self.names.remove(id)"),
    ("standing_workflow_is_never_forgotten", S + "standing.rs", "self.lookup.remove(id).is_some() && self.names.remove(id)", "self.lookup.remove(id).is_some()"),
    ("messages_of_one_part_are_dropped_alone", S + "message_slots.rs", "self.parts.iter_mut().for_each(|part| part.retain(|key, _| wanted(key.queue)));", "self.parts[0].retain(|key, _| wanted(key.queue));"),
    ("rare_fields_of_a_message_are_lost_on_disk", R + "record.rs", "[rare] attempts: Vec<Attempt>, [rare] suspicion", "[rare] suspicion"),
    ("deleted_rows_are_forgotten_with_one", S + "rare_rows.rs", "self.0.take_if(|rows| rows.is_empty());", "self.0 = None;"),
    ("full_disk_is_not_said_to_be_full", S + "room.rs", "left <= self.full_below()", "left < self.full_below()"),
    ("room_of_a_row_is_not_empty", S + "row_room.rs", "        bytes.clear();\n", ""),
    ("flushed_rows_stay_in_memory", S + "store.rs", "if !job.flushed.is_empty() {", "if job.flushed.len() > 5 {"),
    ("flush_is_done_before_its_commit", S + "store.rs", "if last <= position {", "if true {"),
    ("epoch_not_raised", S + "open.rs", "write_epoch(&transaction, epoch)?;", ""),
    ("numbers_not_kept", S + "meta.rs", "meta.put(&name_key(NUMBERS_ROW), &self.numbers)?;", ""),
    ("stretch_does_not_lead_into_another", S + "flushed_rows.rs", "while let Some(stretch) = self.shadowed.iter().find(", "if let Some(stretch) = self.shadowed.iter().find("),
    ("first_flushed_row_of_a_line_is_not_heard_of", S + "flush.rs", "true => group.rows.note_none_flushed(false),", "true => {}"),
    ("gap_behind_what_is_offered_is_not_noted", R + "workflow.rs", "        self.plan_gap(step)?;\n        let holder = match self.record.ticket {", "        let holder = match self.record.ticket {"),
    ("next_place_is_taken_for_one_beyond_a_gap", R + "workflow.rs", "rank > self.record.through + 1", "rank > self.record.through"),
    ("arrival_beyond_a_gap_leaves_its_workflow_idle", R + "workflow.rs", "        self.plan_sweep(step, holder)?;\n        self.plan_forgetting(step)?;\n", "        self.plan_sweep(step, holder)?;\n"),
    ("row_that_was_read_is_kept_when_another_is_flushed", S + "flushed_rows.rs", "        known.forget_row(key, &self.cached_bytes);\n        known.note_counts(key);", "        known.note_counts(key);"),
    ("what_lies_behind_is_read_in_vain", S + "read_pace.rs", "if most_were_used {", "if most_were_used || self.rows > 0 {"),
    ("what_a_trial_hid_stays_hidden", S + "trial.rs", "(None, None) if is_flushed => {", "(None, None) if is_flushed && self.touched.mark() == usize::MAX => {"),
    ("what_a_trial_made_is_taken_for_flushed", S + "trial.rs", "let is_flushed = group.stamp(&key).is_some_and(|stamp| stamp.is_based());", "let is_flushed = true;"),
    ("all_that_is_known_of_a_line_goes_with_each_trial", S + "flushed_rows.rs", "            known.note_counts(key);\n        }\n    }\n\n    /// Forgets the prefixes", "            known.note_counts(key);\n            known.shadowed.clear();\n        }\n    }\n\n    /// Forgets the prefixes"),
    ("changed_cold_message_counts_as_new", S + "write.rs", "Some(record.clone()), true);", "Some(record.clone()), false);"),
    ("who_goes_on_reads_as_few_as_at_first", S + "flushed_rows.rs", "Some(upto) if key > upto => self.count * AHEAD_GROWTH,", "Some(upto) if key > upto => AHEAD_MIN,"),
    ("many_read_ahead_as_if_alone", S + "flushed_rows.rs", "(rows / lines.max(1))", "rows"),
    ("deleted_row_has_the_payload_of_the_one_before", S + "block_changes.rs", "begin = payload.unwrap_or(*key);", "begin = payload.unwrap_or(begin);"),
    ("cut_chunk_loses_its_second_half", S + "sorted_chunks.rs", "        self.chunks.insert(chunk + 1, later);", "        let _ = later;"),
    ("neighbour_is_taken_for_the_row_asked_for", S + "sorted_chunks.rs", "self.at(*place).is_some_and(|(other, _)| other == key)", "self.at(*place).is_some()"),
    ("row_behind_a_chunk_is_not_found", S + "sorted_chunks.rs", "false => ChunkPlace { chunk: chunk + 1, row: 0 },", "false => ChunkPlace { chunk, row: row + 1 },"),
    ("row_before_a_chunk_is_not_found", S + "sorted_chunks.rs", "let chunk = chunk.checked_sub(1)?;", "let chunk = chunk.checked_sub(2)?;"),
    ("empty_chunk_stays", S + "sorted_chunks.rs", "        if rows.is_empty() {\n            self.chunks.remove(chunk);\n        }\n", ""),
    ("appended_rows_cut_chunks", S + "sorted_chunks.rs", "        if row == rows.len() {", "        if row > rows.len() {"),
    ("rows_of_chunks_are_miscounted", S + "sorted_chunks.rs", "        self.len += 1;\n", ""),
    ("last_flushed_key_not_noted", S + "flushed_rows.rs", "            known.last = Some(key.clone());", ""),
    ("journal_checksum_not_checked", S + "journal_row.rs", ".filter(|(bytes, checksum)| xxh3_64(bytes).to_le_bytes() == **checksum)", ""),
    ("row_put_again_is_taken_for_the_deleted_one", S + "table_changes.rs", "slot.stamp.position() == self.position && slot.stamp.index() == index,", "slot.stamp.position() == self.position && is_on_disk,"),
    ("time_not_kept", S + "meta.rs", "self.batch.time = self.batch.time.max(stamp.engine);", ""),
    ("lock_one_ms_short", R + "workflow.rs", "let until = step.now + self.queue.options.lock;", "let until = crate::clock::Timestamp::from_millis((step.now + self.queue.options.lock).as_millis() - 1);"),
    ("lock_lasts_through_its_end", E + "turn.rs", "Some((due, token)) if due <= self.now", "Some((due, token)) if due < self.now"),
    ("reminder_late_by_a_turn", E + "turn.rs", "filter(|reminder| reminder.due.is_past(self.now))", "filter(|reminder| reminder.due.at() < reminder.due.clock(self.now))"),
    ("waiters_not_served", E + "turn.rs", "Effect::Work(queue) => drop(self.woken.insert(WaitsFor::Queue(queue))),", "Effect::Work(queue) => drop(queue),"),
    ("waiter_loses_his_place", E + "turn.rs", "self.wakeups.put_back(place, waiter);", "drop((place, waiter));"),
    ("retry_reminder_forgotten", R + "line.rs", "self.move_reminder(step, &Remind::Due(sequence), due, due_of(after))?;", "self.move_reminder(step, &Remind::Due(sequence), due, None)?;"),
    ("expiry_reminder_forgotten", R + "line.rs", "self.move_reminder(step, &Remind::Expiry(sequence), expiry, expiry_of(after))", "Ok(())"),
    ("deferral_without_its_end", R + "fail.rs", "DeferralEnd::At(at) => Some(Due::wall(at)),", "DeferralEnd::At(_) => None,"),
    ("everybody_settles_apart", R + "settle.rs", "step.locks.get(token).is_some_and(|lock| lock.is_apart)\n            && options", "options"),
    ("void_claim_is_heard", R + "hide.rs", "|| message.handed_out_at != claim.at", ""),
    ("hidden_is_not_counted", R + "hide.rs", "            record.count_hand_out();\n", ""),
    ("ended_claim_is_cancelled", R + "hide.rs", "message.delivery_count == 0 { SettlementKind::Cancelled }", "message.delivery_count <= 1 { SettlementKind::Cancelled }"),
    ("failed_deferral_keeps_its_instant", R + "fail.rs", "Status::ByConsumer { due: due.or(back), aside: true }", "Status::ByConsumer { due: back.or(due), aside: true }"),
    ("fetched_loses_its_deferral", R + "record.rs", "|DeferralRecord { due, aside }| Status::ByConsumer { due, aside })", "|DeferralRecord { aside, .. }| Status::ByConsumer { due: None, aside })"),
    ("window_one_ms_short", R + "send.rs", "let until = self.now + window;", "let until = crate::clock::Timestamp::from_millis((self.now + window).as_millis() - 1);"),
    ("number_given_twice", R + "step.rs", "self.numbers()?.next_sequence = next + count;", "self.numbers()?.next_sequence = next + count - u64::from(next.is_multiple_of(7));"),
    ("cursor_passes_two", R + "order.rs", "self.record.cursor.max(to + 1);", "self.record.cursor.max(to + 2);"),
    ("recovery_takes_back_one", R + "operate.rs", "for sequence in holding.out.iter() {\n            self.fail", "for sequence in holding.out.iter().take(1) {\n            self.fail"),
    ("renewed_lock_never_ends", R + "lock.rs", "lock.until = until;\n        self.deadlines.insert(lock.until, lock.number, token);", "lock.until = until;"),
    ("gap_is_timed_anew_by_each", R + "gap.rs", "if before.as_ref().is_some_and(|gap| !stays(gap)) {", "if before.as_ref().is_some_and(|gap| !stays(gap) || gap.due.is_some()) {"),
    ("one_early_too_few", R + "early.rs", "self.early + self.unfollowed_early <= options.early_max", "self.early + self.unfollowed_early < options.early_max"),
    ("queue_full_one_too_early", R + "judge.rs", "then <= queue.options.messages_max {", "then < queue.options.messages_max {"),
    ("one_place_too_many_given_up", R + "gap.rs", "self.give_up(step, from, waiting - 1, SettlementKind::Skipped)?;", "self.give_up(step, from, waiting, SettlementKind::Skipped)?;"),
    ("spent_for_itself_is_held", R + "fail.rs", "is_alone = matches!(self.key.stream, WorkflowRef::Single(_))", "is_alone = self.key.stream == WorkflowRef::FIRST"),
    ("dead_letter_not_delisted", R + "redrive.rs", "self.list_dead_letter(step, sequence, before, false)?;\n        let mut message", "let mut message"),
    ("lock_freed_with_messages_out", R + "lock.rs", "self.kind != LockKind::Whole && self.out.is_empty()", "self.kind != LockKind::Whole"),
    ("holding_not_written", R + "receive.rs", "self.write_holding(step, token)?;\n        Ok(handed)", "Ok(handed)"),
    ("holding_of_a_run_not_written", R + "receive.rs", "if !run.is_empty() {", "if false && !run.is_empty() {"),
    ("purge_not_counted", R + "line.rs", "counts.purged += 1,", "counts.expired += 1,"),
    ("time_follows_the_clock_back", E + "clocks.rs", "let (engine, expected) = (self.now.engine + passed, self.now.wall + passed);", "let (engine, expected) = (reading.wall, self.now.wall + passed);"),
    ("time_forgotten_over_restart", E + "clocks.rs", "true => (engine.max(reading.wall), Duration::ZERO),\n            false => (engine + reading.wall.since(wall).max(least), ahead),", "true => (engine.max(reading.wall), Duration::ZERO),\n            false => (reading.wall, ahead),"),
    ("turn_without_its_instant", E + "writer.rs", "            turn.stamp(stamp);\n", "            let _ = stamp;\n"),
    ("turn_of_a_group_is_not_written", E + "commits.rs", "            self.jobs.extend(job);\n", "            self.jobs.truncate(1);\n            self.jobs.extend(job.filter(|_| self.jobs.is_empty()));\n"),
    ("group_is_answered_before_it_is_written", E + "commits.rs", "            self.release.append(release);", "            release.answers.into_iter().for_each(|letter| letter.publish(&mut |_| {}));"),
    ("group_is_refused_but_for_its_first", E + "commits.rs", "        self.answers.append(&mut later.answers);\n", "        std::mem::swap(&mut self.answers, &mut later.answers);\n"),
    ("group_is_noted_with_more_than_it_has", E + "commits.rs", "self.progress.committed.store(last.position", "self.progress.committed.store(last.position + 1"),
    ("group_begins_the_margin_behind_its_first", S + "local_log.rs", "entries.last().map(|entry| entry.bytes)", "entries.first().map(|entry| entry.bytes)"),
    ("receive_overtakes_one_that_was_left", E + "client/accepted_workflow.rs", "        self.left.end(|| self.client.withdraw(self.token)).await;\n", ""),
    ("who_waits_for_what_was_left_is_not_woken", E + "letter.rs", "            AnswerSlot::Left(wakers) => std::mem::take(wakers),\n", ""),
    ("only_one_waits_for_what_was_left", E + "letter.rs", "                    wakers.push(context.waker().clone());", "                    *wakers = vec![context.waker().clone()];"),
    ("what_failed_is_under_way_for_ever", E + "letter.rs", "        if is_awaited {\n            *self = AnswerSlot::Left", "        {\n            let _ = is_awaited;\n            *self = AnswerSlot::Left"),
    ("one_that_has_gone_keeps_the_others_waiting", E + "turn.rs", "                if !is_full && waiter.letter.is_left() {", "                if !is_full && waiter.letter.is_left() && false {"),
    ("left_is_handed_out_to_nobody", E + "letter.rs", "self.work_wait.is_some() && self.is_left()", "self.work_wait.is_some() && self.is_left() && false"),
    ("failed_commit_is_answered", E + "commits.rs", "self.refuse(release, fault);\n        // The hot loop", "self.publish(release);\n        // The hot loop"),
    ("waiter_waits_too_long", E + "wakeups.rs", "self.deadlines.iter().take_while(|(until, _)| *until <= elapsed)", "self.deadlines.iter().take_while(|(until, _)| *until < elapsed)"),
    ("one_holder_gets_the_whole_rate", E + "wakeups.rs", "woken.sort_by_key(|waits_for| self.waiting.get(waits_for).and_then(|places| places.first().copied()));", "woken.sort();"),
    ("due_work_waits_for_a_request", E + "writer.rs", "!commands.is_empty() || self.next_due.is_past(self.clocks.now())", "!commands.is_empty()"),
    ("nothing_given_back_after_a_restart", E + "writer.rs", "self.turn(vec![some])?;", "{ drop(some); self.turn(Vec::new())? };"),
    ("idle_flush_ends_behind_its_commit", S + "window.rs", "            self.close(position);\n        }\n        ends", "            self.close(position + 1);\n        }\n        ends"),
    ("idle_flush_forgets_what_was_filling", S + "store.rs", "if self.window.append_idle(job.position, job.bytes()) {", "if self.window.append_idle(job.position, job.bytes()) && false {"),
    ("idle_after_what_was_asked_first", E + "writer.rs", "        if has_requests {", "        if has_requests && false {"),
    ("idle_flush_while_somebody_is_at_work", E + "writer.rs", "if job.is_none() && release.is_empty() && self.flushes_in() == Some(Duration::ZERO) {", "if job.is_none() && release.is_empty() && self.flushes_in().is_some() {"),
    ("index_of_a_trial_is_kept", R + "settlements.rs", "        self.indexed = self.indexed.min(noted);", ""),
    ("forgotten_settlement_is_answered", R + "settlements.rs", " && !known.is_forgotten)", ")"),
    ("settlements_of_a_trial_are_kept", R + "settlements.rs", "self.in_order.truncate(place(noted, self.dropped));", ""),
    ("forgotten_in_a_trial_stays_forgotten", R + "settlements.rs", "            self.in_order[place(number, self.dropped)].is_forgotten = false;", "            let _ = number;"),
    ("dropped_settlement_stays_in_the_index", R + "settlements.rs", "            self.index.remove(&first.subject);", ""),
    ("deletion_not_flushed", S + "flush.rs", "None => None,", "None => continue,"),
    ("last_commit_of_a_generation_not_flushed", S + "flush.rs", "stamp.is_some_and(|stamp| stamp.position() <= upto)", "stamp.is_some_and(|stamp| stamp.position() < upto)"),
    ("generation_dropped_too_early", S + "store.rs", "if self.units_left() == 0 {", "if self.units_left() == 0 || job.position.is_multiple_of(5) {"),
    ("committed_before_the_commit", S + "flush.rs", "row.position <= position)", "row.position <= position + 1)"),
    ("numbers_not_replayed", S + "replay.rs", "self.meta.numbers = numbers;", "let _ = numbers;"),
    ("counters_not_replayed", S + "replay.rs", "self.meta.counters.extend(counters);", "let _ = counters;"),
    ("time_not_replayed", S + "replay.rs", "Ok(BatchRecord { position, hash: checksum, time, wall })", "let _ = time;\n        Ok(BatchRecord { position, hash: checksum, time: crate::clock::Timestamp::default(), wall })"),
    ("epoch_used_twice", S + "open.rs", "epoch.checked_add(1)", "Some(epoch.max(1))"),
    ("journal_dropped_through_too_far", S + "journal.rs", "let end = key_of_piece(position, u32::MAX);", "let end = key_of_piece(position + 1, u32::MAX);"),
    ("answer_not_kept", R + "once.rs", "self.keep_answer(place, receipts.clone(), Vec::new())?;", "let _ = place;"),
    ("another_request_is_answered_as_the_first", R + "once.rs", "match known.digest == key.digest() {", "match true {"),
    ("forgotten_answer_is_still_counted", R + "once.rs", "self.write(Change::AnswerCount(of, (left > 0).then_some(left)))?;", "let _ = left;"),
    ("answer_of_a_topic_not_kept", R + "once.rs", "self.keep_answer(place, receipts.clone(), shares.clone())?;", "let _ = place;"),
    ("keys_of_a_topic_outlive_it", R + "once.rs", "topic.number, key = key.as_str()", "topic.name, key = key.as_str()"),
    ("answers_of_topics_lost_when_opened", S + "replay.rs", "queue == QueueId::OF_TOPICS || queues", "queues"),
    ("answer_of_a_topic_never_forgotten", R + "remind.rs", "return self.forget_answer(reminder.queue, key.clone());", "let _ = key;"),
    ("answer_of_a_topic_told_to_others", R + "once.rs", "KeyLookup::Before(known) => (known.receipts.clone(), known.shares.clone()),", "KeyLookup::Before(known) => (known.receipts.clone(), shares_of(&fanout)),"),
    ("sent_by_the_rules_of_yesterday", R + "topics.rs", "if topic.revision != fanout.revision {", "if topic.revision < fanout.revision {"),
    ("copies_judged_apart", R + "topics.rs", "judged.push(self.judge(&mut judge, &queue, messages)?);", "judged.push(self.judge(&mut Judge::default(), &queue, messages)?);\n            let _ = &mut judge;"),
    ("place_kept_where_there_is_none", R + "topics.rs", "if matches!(order, Some(Order::None | Order::Arrival)) {", "if matches!(order, Some(Order::None)) {"),
    ("deleted_subscription_stays_in_its_topic", R + "topics.rs", "changed.subscriptions.retain(|subscription| subscription.name != name);\n        self.write_topic(changed)", "changed.subscriptions.retain(|subscription| subscription.name != name);\n        let _ = changed;\n        Ok(())"),
    ("plain_rules_make_a_copy_each", E + "client/fanout.rs", "None if last_plain == Some(rule.subscription) => {}\n", ""),
    ("rule_without_a_value_is_not_judged", E + "client/fanout.rs", "None => self.judged.push(at),", "None if at > 0 => self.judged.push(at),\n                None => {}"),
    ("state_set_at_by_the_other_clock", R + "settle.rs", "state.as_ref().map(|_| step.wall);", "state.as_ref().map(|_| step.now);"),
    ("refused_operator_is_not_written_down", R + "on_record.rs", "let number = self.write_down(entry, begun)?;", "if entry.refusal.is_some() {\n            return reply.map_err(Stop::Refused);\n        }\n        let number = self.write_down(entry, begun)?;"),
    ("each_step_of_a_purge_is_an_entry", R + "on_record.rs", "begun.filter(|begun| begun.is_same_work(&entry))", "begun.filter(|_| false)"),
    ("lock_is_not_renewed", P + "lock_renewals.rs", "self.client.spawn(lock.keep(self.client.clone(), self.renew_for, self.outlasted.subscribe()));", "drop(lock);"),
    ("renewal_waits_for_a_busy_thread", P + "lock_renewals.rs", "self.client.spawn(lock.keep(self.client.clone(), self.renew_for, self.outlasted.subscribe()));", "drop(tokio::spawn(lock.keep(self.client.clone(), self.renew_for, self.given_up.clone())));"),
    ("busy_handler_is_never_ended", P + "invocation.rs", "stopped = unconstrained(stopped(client, lock))", "stopped = stopped(client, lock)"),
    ("who_waits_for_a_signal_is_not_rung", P + "signal.rs", "if self.is_awaited.load(Ordering::Acquire) {", "if false {"),
    ("renewed_handler_outlasts_every_drain", P + "lock_renewals.rs", "        self.signal.outlast();\n        std::future::pending().await", "        std::future::pending().await"),
    ("handler_outlasts_every_drain", P + "lock_renewals.rs", "signals.iter().for_each(|signal| signal.outlast());", "drop(signals);"),
    ("completed_one_by_one", P + "settling.rs", "coming.recv_many(&mut come, limits::COMPLETE_ALL_MAX)", "coming.recv_many(&mut come, 1)"),
    ("taker_is_not_told_of_a_lost_lock", P + "lock_renewals.rs", "            taker.cancel(self.number);\n", "            let _ = taker;\n"),
    ("lost_assignment_is_never_given_up", P + "lock_renewals.rs", "            taker.give_up(self.number);\n", "            let _ = taker;\n"),
    ("taken_is_not_given_up_after_the_drain", P + "pool.rs", "            drop(taken);\n", "            std::mem::forget(taken);\n"),
    ("only_what_is_done_is_settled", P + "single.rs", "for other in done.extract_if(.., |done| done.only_done().is_none()) {", "for other in done.extract_if(.., |done| done.only_done().is_none()).take(0) {"),
    ("whatever_a_handler_says_it_is_done", P + "single.rs", "Ok(outcome) if outcome.is_only_done() => SaidOfDelivery::Done", "Ok(_) => SaidOfDelivery::Done"),
    ("whoever_ends_a_lock_tells_nobody", P + "signal.rs", "if !self.over.swap(true, Ordering::AcqRel) {", "self.over.store(true, Ordering::Release);\n        if false {"),
    ("purge_of_a_workflow_stops_after_a_step", R + "purge.rs", "                next = Some(place);\n", ""),
    ("token_accepted_in_another_queue", R + "lock.rs", "|lock: &&LockEntry| lock.workflow.queue == queue && lock.kind", "|lock: &&LockEntry| lock.kind"),
    ("lock_renewed_from_another_queue", R + "settle.rs", "is_none_or(|lock| lock.workflow.queue != queue.id)", "is_none()"),
    ("newest_attempt_is_dropped", R + "fail.rs", "message.rare.attempts.remove(0);", "message.attempts.pop();"),
    ("chain_of_the_journal_is_not_checked", S + "replay.rs", "last.position + 1 == position && last.hash == header.previous", "last.position + 1 == position"),
    ("deleted_row_stays_in_its_block", S + "blocks.rs", "Some(change) => put(change, &mut blocks),", "Some((key, None)) => blocks.write(key, payload),\n                    Some(change) => put(change, &mut blocks),"),
    ("row_before_the_first_of_a_block_is_lost", S + "blocks.rs", "        put(change, blocks);\n    }\n}", "        let _ = (change, &blocks);\n    }\n}"),
    ("row_behind_the_last_of_a_block_is_lost", S + "blocks.rs", "changes.for_each(|change| put(change, &mut blocks));", "let _ = changes;"),
    ("blocks_span_queues", S + "blocks.rs", "self.upto.as_ref().is_none_or(|upto| key < upto.as_slice()) && QueueId::first_of(key) == self.queue", "self.upto.as_ref().is_none_or(|upto| key < upto.as_slice())"),
    ("rows_go_on_into_the_next_block", S + "blocks.rs", "self.upto.as_ref().is_none_or(|upto| key < upto.as_slice()) && QueueId", "QueueId"),
    ("empty_block_stays", S + "blocks.rs", "self.table.remove(found.key.as_slice()).map_err(store_fault)?;", "let _ = found;"),
    ("damaged_neighbour_is_joined", S + "blocks.rs", "&& let Ok(payload) = verify_checksum(&self.definition, own.value(), checksummed.value())\n            {", "&& let payload = &checksummed.value()[..checksummed.value().len() - 8]\n            {\n                let _ = verify_checksum;"),
    ("small_rest_is_left_behind", S + "blocks.rs", "if bytes < RIGHT_SIZE_BYTES {", "if bytes == 0 {"),
    ("joined_block_stays", S + "blocks.rs", "self.table.remove(given_up.as_slice()).map_err(store_fault)?;", "let _ = given_up;"),
    ("joined_block_begins_too_late", S + "blocks.rs", "match small.key < neighbour.key {", "match small.key > neighbour.key {"),
    ("small_blocks_are_never_joined", S + "blocks.rs", "only.bytes.len() < SMALL_BYTES", "only.bytes.len() < SMALL_BYTES / 1_000"),
    ("what_is_appended_goes_into_full_blocks", S + "blocks.rs", "if payload.len() >= FILLED_BYTES && rows", "if payload.len() >= 100 * FILLED_BYTES && rows"),
    ("block_is_served_unchecked", S + "block.rs", "let rest = verify_checksum(&table, key, checksummed)?;", "let (_, rest) = (key, &checksummed[..checksummed.len().saturating_sub(8)]);"),
    ("looking_passes_over_a_row_with_a_longer_beginning", S + "block.rs", "if shared > matched {", "if shared >= matched && matched > 0 {"),
    ("walk_begins_behind_the_block_that_has_its_first_row", S + "table_rows.rs", "let before = table.range::<&[u8]>(..=key).map_err(store_fault)?.next_back();\n        if", "let before = table.range::<&[u8]>(key..=key).map_err(store_fault)?.next_back();\n        if"),
    ("walk_back_ends_at_the_first_block_that_begins_behind", S + "table_rows.rs", "let first = if T::IN_BLOCKS { Bound::Unbounded } else { from };", "let first = from;"),
    ("block_of_another_queue_is_read", S + "table_rows.rs", "    QueueId::first_of(block) == QueueId::first_of(key)\n}", "    QueueId::first_of(block) == QueueId::first_of(key) || block < key\n}"),
    ("older_rows_are_put_in_blocks_but_for_the_last_page", S + "upgrade.rs", "new.merge(&page.rows())?;", "if page.bytes() >= PAGE_BYTES {\n            new.merge(&page.rows())?;\n        }"),
    ("only_one_page_of_older_rows_is_put_in_blocks", S + "upgrade.rs", "new.merge(&page.rows())?;\n    }", "new.merge(&page.rows())?;\n        break;\n    }"),
    ("older_row_is_put_in_a_block_unchecked", S + "upgrade.rs", "let payload = verify_checksum(&definition, key.value(), checksummed.value())?;\n            let put_payload", "let payload = &checksummed.value()[..checksummed.value().len() - 8];\n            let put_payload"),
    ("row_in_a_wrong_block_is_not_found_wrong", "src/engine/verify/bytes.rs", "let belongs = block <= key && QueueId", "let belongs = !block.is_empty() && QueueId"),
    ("rows_of_a_block_are_not_counted_in_a_backup", S + "snapshot.rs", "count += u64::from(counts(key));", "count = u64::from(counts(key));"),
    ("chain_of_an_older_journal_is_not_checked", S + "upgrade.rs", "last.position + 1 == position && last.hash == header.previous", "last.position + 1 == position"),
    ("sleep_lasts_until_something_is_due", E + "timers.rs", ".map(|wait| wait.min(limits::SLEEP_MAX))", ""),
    ("name_of_a_new_file_is_not_synced", S + "create.rs", "names.sync_folder(folder_of(path))", "Ok(drop(folder))"),
    ("content_of_a_new_file_is_not_synced", S + "create.rs", "    names.sync_file(new)?;\n", ""),
    ("older_journal_is_not_flushed", S + "upgrade.rs", "Some(payload) => sheet.put_payload(key, payload.to_vec())?,", "Some(_) => {}"),
    ("older_deletion_is_not_flushed", S + "upgrade.rs", "None => sheet.delete(key)?,", "None => {}"),
    ("older_reminders_are_lost", S + "upgrade.rs", "new.put(&format3::reminder_key(key.value()).ok_or_else(nonsense)?, &())?;", "let _ = (&mut new, nonsense);"),
    ("older_counters_are_those_of_the_last_flush", S + "upgrade.rs", "self.counters.extend(header.tallies);", ""),
    ("handlers_begin_before_all_is_ready", D + "handler_supervisor.rs", "self.may_begin && post.is_none_or", "post.is_none_or"),
    ("idle_handlers_stay_idle", D + "watch.rs", "            daemon_state.handler_supervisor.start_idle().await;\n", ""),
    ("row_without_an_id_is_refused", D + "outbox_copier.rs", "let numbered = outbox.ids_are_read()", "let numbered = (false && outbox.ids_are_read())"),
    ("broken_answer_completes", H + "answer.rs", "Err(_) => text.windows(9)", "Err(_) => false && text.windows(9)"),
    ("same_tag_for_a_message_that_comes_again", B + "holds.rs", "        all[24..].copy_from_slice(&delivery.delivery_count().to_be_bytes());\n", ""),
    ("settled_in_a_transaction_is_out_of_hand", B + "links.rs", "        self.in_transactions.insert(delivery, hold);\n", "        let _ = hold;\n"),
    ("drain_that_nobody_looked_into_is_over", B + "feed.rs", "            _ if receiver.is_unasked => {}\n", ""),
    ("rolled_back_stays_in_hand", B + "unsettled.rs", "        self.in_transactions.retain(|_, before| before.number() != hold.number());\n", ""),
    ("steps_of_a_transaction_join_apart", R + "step.rs", "Step { joined, ..next }", "Step { joined: 0 * joined, ..next }"),
    ("links_fetch_without_bound", B + "backlog.rs", "self.is_full = self.bytes() >= until;", "self.is_full = self.bytes() >= usize::MAX.min(until.saturating_mul(1 << 20));"),
    ("orphans_are_left_alone", D + "daemon.rs", "        fence(&data_dir.state_file().store_id()).await?;\n", "        let _ = fence;\n"),
    ("exit_75_is_retried_uncounted", H + "exec.rs", "Err(Failure::new(result))\n            }\n            (ProgramEnd::Exited, Some(BAD_DATA))", "Err(Failure::unbegun(result))\n            }\n            (ProgramEnd::Exited, Some(BAD_DATA))"),
    ("lost_lock_in_a_batch_is_accepted", B + "settle.rs", "answers.into_iter().map(|answer| answer.map_err(AmqpRefusal::from)).collect()", "answers.into_iter().map(|answer| answer.or(Ok(()))).collect()"),
    ("row_behind_a_hole_is_copied", "src/postgres/watermark.rs", "Some(number) <= self.last_final || before", "true || before"),
    ("prepared_transactions_are_not_waited_for", "src/postgres/sql.rs", "or (l.locktype = 'relation' and l.mode", "or (false and l.locktype = 'relation' and l.mode"),
    ("transactions_without_writes_are_not_waited_for", "src/postgres/sql.rs", "(l.locktype = 'virtualxid' and", "(false and l.locktype = 'virtualxid' and"),
    ("waits_for_transactions_that_came_later", "src/postgres/watermark.rs", "awaited.retain(|transaction| open.contains(transaction));", "*awaited = open.clone();"),
    ("how_far_it_is_copied_is_not_kept", D + "outbox_copier.rs", "Completion::new().state(Bytes::from(written))", "Completion::new().state(Bytes::from(written)).clear_state()"),
    ("row_that_is_refused_is_passed", D + "outbox_copier.rs", "Err(misuse) if messages.is_empty() => return Err(self.row(number, &misuse.to_string())),", "Err(_) if messages.is_empty() => {}"),
    ("sequence_with_steps_is_taken", "src/postgres/table.rs", "if increment != 1 || cache != 1 || cycles {", "if cycles {"),
    ("first_steps_of_a_refused_transaction_stay", R + "transact.rs", "step.in_trial(|mut step| step.run_steps(self.steps.clone()))?;", "step.run_steps(self.steps.clone())?;"),
    ("tried_steps_of_a_transaction_are_remembered", R + "transact.rs", "        self.settlements.roll_back();\n", ""),
    ("tried_steps_of_a_transaction_wake_somebody", R + "transact.rs", "step.in_trial(|mut step| step.run_steps(self.steps.clone()))?;", "let mut effects = Vec::new();\n        let tried = step.in_trial(|mut step| {\n            let done = step.run_steps(self.steps.clone());\n            effects.append(&mut step.effects);\n            done\n        });\n        step.effects.append(&mut effects);\n        tried?;"),
    ("dead_letter_is_handed_out_twice", R + "dead_letters.rs", "match is_locked || dead_letter_of(&message).deferred {", "match dead_letter_of(&message).deferred {"),
    ("dead_letter_set_aside_is_offered", R + "dead_letters.rs", "match is_locked || dead_letter_of(&message).deferred {", "match is_locked {"),
    ("dead_letter_is_not_counted", R + "dead_letters.rs", "        change(&mut record).deliveries += 1;\n", ""),
    ("released_dead_letter_is_counted", R + "dead_letters.rs", "Settlement::Postpone { .. } => change(&mut message).deliveries -= 1,", "Settlement::Postpone { .. } => {}"),
    ("dead_letter_behind_the_search_is_forgotten", R + "lock.rs", "            *from = place;\n", "            let _ = (from, place);\n"),
    ("who_waits_for_a_dead_letter_is_not_woken", R + "dead_letters.rs", "        self.effects.push(Effect::DeadLetters(name));\n", "        let _ = name;\n"),
    ("redriven_dead_letter_stays_locked", R + "fail.rs", "false => step.end_lock_of_dead_letter(message_key),", "false => {}"),
    ("lost_dead_letter_stays_locked", R + "dead_letters.rs", "        self.end_lock_of_dead_letter(key);\n        let dead_letter", "        let dead_letter"),
    ("tried_locks_stay", R + "transact.rs", "        self.locks.roll_back();\n", ""),
    ("rows_touched_before_a_trial_are_not_journaled", S + "trial.rs", "            (Some(slot), _) => group.rows.insert(key, slot),", "            (Some(mut slot), _) => {\n                slot.stamp = crate::engine::store::slot::SlotStamp::fresh(slot.stamp.is_based());\n                group.rows.insert(key, slot)\n            }"),
    ("end_of_a_line_is_not_moved", S + "line_rows.rs", "            self.last = *last;\n", "            let _ = last;\n"),
    ("zero_at_the_end_of_an_id_is_not_seen", S + "key.rs", "zeros_of(u64::from_le_bytes(*last))", "zeros_of(u64::from_le_bytes(*last) | 1 << 56)"),
    ("row_changed_in_its_place_is_not_flushed", S + "change.rs", "if self.touched.note(&mut slot.stamp, &place, key) {", "if self.touched.note(&mut slot.stamp, &place, key) && false {"),
    ("row_changed_in_its_place_is_not_taken_back", S + "change.rs", "    ) -> Option<R> {\n        if self.trial.is_some() {", "    ) -> Option<R> {\n        if false {"),
    ("message_handed_out_is_counted_as_ready_still", R + "line.rs", "        let before = self.leave_state(step, &found)?;", "        let before = StateBefore { was_out: false, due: due_of(&found), expiry: expiry_of(&found) };"),
    ("reminder_of_a_message_handed_out_stays", R + "line.rs", "due: due_of(before), expiry: expiry_of(before)", "due: None, expiry: expiry_of(before)"),
    ("numbers_of_a_trial_stay", S + "trial.rs", "        self.meta.numbers = before.numbers;\n", ""),
    ("transactions_never_time_out", B + "transactions.rs", "Some(open) if now_ms >= open.ends_at_ms => {", "Some(open) if now_ms >= open.ends_at_ms && false => {"),
    ("ended_coordinator_leaves_its_transactions", B + "transactions.rs", "self.open.retain(|_, open| open.coordinator != coordinator);", "let _ = coordinator;"),
    ("forwarding_is_not_counted", B + "forwarding.rs", "PropertyValue::Integer(times + 1)", "PropertyValue::Integer(times)"),
    ("forwarded_messages_stay", B + "forwarding.rs", "            transaction.complete(queue.name(), id).map_err(|misuse| Stay::of(misuse.into()))?;\n", "            let _ = id;\n"),
    ("what_is_forwarded_stays", B + "forwarding.rs", "            transaction.complete(queue.name(), id).map_err(|misuse| Stay::of(misuse.into()))?;\n", "            let _ = id;\n"),
    ("a_missing_target_is_never_waited_for", B + "forward_each.rs", "            condition::NOT_FOUND\n            | condition::RESOURCE_LIMIT", "            condition::RESOURCE_LIMIT"),
    ("the_session_of_a_target_is_not_required", B + "forwarding.rs", "if target.requires_session() && message.workflow_id.is_none() {", "if false && target.requires_session() && message.workflow_id.is_none() {"),
    ("given_back_behind_stays_counted", R + "revoked.rs", "        message.delivery_count -= 1;\n", ""),
    ("more_is_fetched_than_may_be_unsettled", B + "feed.rs", "            max = max.min(unsettled_room);\n", ""),
    ("taken_back_counts_as_sent_ahead", B + "unsettled.rs", "before.number() == hold.number());\n            taken_back", "before.number() == hold.number() && false);\n            taken_back"),
    ("old_ones_behind_young_ones_stay", B + "management/deleting.rs", "        if received.is_empty() {", "        if received.is_empty() || !passed.deliveries.is_empty() {"),
    ("browsers_look_without_bound", B + "browse.rs", "_ if is_full => drop", "_ if is_full && false => drop"),
    ("young_messages_are_deleted_too", B + "management/deleting.rs", "delivery.message().accepted_at >= before", "delivery.message().accepted_at > before"),
    ("what_was_not_deleted_stays_locked", B + "management/deleting.rs", "give_back_deliveries(self.queue, self.deliveries.drain(..));", "let _ = self.queue;"),
    ("one_copy_of_a_topic_is_cancelled", B + "management/topic_scheduling.rs", "view.sequence_number >= *first", "view.sequence_number == *first"),
    ("comments_begin_in_texts", B + "plain_json.rs", "(b'\"', _) => end_of_text(&plain, at)", "(b'\"', _) => at + 1"),
    ("a_queue_cannot_be_called_health", B + "health.rs", "request.method() != Method::GET || query(request.uri(), \"api-version\").is_some()", "request.method() != Method::GET"),
    ("who_missed_the_end_of_a_drain_waits_for_ever", "src/amqp/link.rs", "self.drained_at = Some(self.delivery_count);", ""),
    ("a_queue_inherits_what_was_said_of_another", B + "description.rs", "self.of.is_none_or(|of| created_at.may_be(of))", "self.of.is_none_or(|of| created_at.may_be(of) || true)"),
    ("given_up_id_hides_the_one_that_stands", R + "judge.rs", "[Some(rank), self.rank_before_follower(step, id)?].into_iter().flatten()", "[Some(rank)].into_iter().flatten()"),
    ("assignment_let_fall_says_nothing", P + "taker.rs", "if self.reply.is_some() {", "if false {"),
    ("refused_append_is_answered", S + "job.rs", "log.append(job.entry())?;", "drop(log.append(job.entry()));"),
    ("answered_before_the_log_has_it", S + "job.rs", "log.append(job.entry())?;", "let (log, position, bytes) = (log.clone(), job.position, job.row.to_vec());\n                    drop(std::thread::Builder::new().spawn(move || log.append(Entry { position, bytes: &bytes })));"),
    ("no_answer_is_taken_for_yes", S + "shared_log.rs", "AppendAnswer::Unknown(why) => why,", "AppendAnswer::Unknown(_) => return Ok(()),"),
    ("entry_of_another_is_taken_for_own", S + "shared_log.rs", "return Ok(Some(found == entry.bytes));", "return Ok(Some(!found.is_empty()));"),
    ("hole_in_the_log_is_passed_over", S + "shared_log.rs", "if entry.position > progress.next || !entry.is_sound() {", "progress.next = entry.position;\n            if !entry.is_sound() {"),
    ("end_of_the_log_is_believed", S + "shared_log.rs", "while progress.next <= progress.last {", "let mut once = true;\n        while std::mem::take(&mut once) {"),
    ("short_log_is_followed", S + "follow.rs", "let mut is_known = from == 0;", "let mut is_known = true;"),
    ("entry_of_another_history_is_followed", S + "follow.rs", "at if at == position && RowReader::open(entry.bytes)?.1 == checksum => Ok(()),\n", "at if at == position => Ok(()),\n"),
    ("queues_are_not_followed", S + "follow.rs", "self.change_queues(&queue_changes);", ""),
    ("epoch_is_not_raised_by_a_takeover", S + "follow.rs", "number: next_epoch(self.epoch.number)?, holder", "number: self.epoch.number.max(1), holder"),
    ("log_is_trimmed_above_the_second_newest", K + "snapshot_list.rs", "self.0.get(limits::SNAPSHOTS_KEPT - 1)", "self.0.first()"),
    ("list_of_snapshots_gets_older", K + "snapshot_list.rs", "let is_newer = newer.place.position > self.newest();", "let is_newer = true;"),
    ("object_that_is_being_taken_is_removed", K + "snapshot_list.rs", "position <= self.newest() && self", "position > 0 && self"),
    ("snapshot_is_not_read_back", K + "snapshot_taker.rs", "        read.map_err(|error| format!(\"the snapshot {object} was read back: {error:?}\"))?;\n", "        drop(read);\n"),
    ("trimmed_for_a_snapshot_of_another_history", K + "snapshot_taker.rs", "if !partition.log().has(oldest.place)", "if false && !partition.log().has(oldest.place)"),
    ("trimmed_for_a_snapshot_that_cannot_be_read", K + "snapshot_taker.rs", "oldest.object)\n        })?;", "oldest.object)\n        }).ok();"),
    ("what_no_snapshot_needs_stays", K + "snapshot_taker.rs", "self.wait_for(self.node.snapshots.remove_beyond(partition.number(), &list))?;", "let _ = &list;"),
    ("snapshot_is_copied_into_its_place", S + "snapshot_file.rs", "Ok(put_in_place(&self.path, path)?)", "let _ = put_in_place;\n        Ok(drop(std::fs::copy(&self.path, path).map_err(file_fault)?))"),
    ("stale_file_wins", K + "partition.rs", "self.log.first()? <= position + 1 {", "self.log.first()? > 0 {"),
    ("damaged_snapshot_ends_the_search", K + "restoring.rs", "for record in list.0.iter().filter(|record| reaches(record.place.position)) {", "for record in list.0.iter().filter(|record| reaches(record.place.position)).take(1) {"),
    ("partition_answers_before_it_has_its_queues", K + "serving.rs", "        self.enforced.begin(client).await?;\n", "        let _ = &self.enforced;\n"),
    ("a_lease_is_kept_by_who_does_not_know_that_it_has_it", K + "partition.rs", "            // It was claimed after all, though the answer was lost.\n            self.release();\n", ""),
    ("a_queue_that_only_the_arbiter_has_stays_so", K + "defining.rs", "self.adopt(name, behind).await?;", "let _ = behind;"),
    ("handed_over_without_a_key", K + "handing_over.rs", "Command::HandOver(verbs::HandOver { source, queue, message });", "Command::Send(verbs::Send { queue, messages: vec![message] });\n        let _ = source;"),
    ("outbox_forgets_the_order", K + "handover.rs", "let workflow_id = self.message.workflow_id.as_ref().map(|id| line_of(&self.queue, id));", "let workflow_id = None;\n        let _ = line_of;"),
    ("what_finds_no_room_elsewhere_is_given_up", K + "handing_over.rs", "            SendRefusal::QueueFull { .. }\n", "            SendRefusal::TopicChanged(_)\n"),
    ("sent_to_a_queue_that_is_not_there", K + "outbox.rs", "if !self.definitions.is_there(&queue).await? {", "if false && !self.definitions.is_there(&queue).await? {"),
    ("handed_over_and_kept", K + "handing_over.rs", "let settled = delivery.complete().await;", "let settled = delivery.release().await;"),
    ("whoever_appends_counts_as_dead", K + "hearing.rs", "                leases.hear_of(&node);\n", "                let _ = &node;\n"),
    ("node_waits_for_servers_that_are_down", K + "servers.rs", "if !is_majority(answered, monitors.len()) {", "if answered < monitors.len() {"),
    ("one_server_of_three_is_enough", K + "servers.rs", "if !is_majority(answered, monitors.len()) {", "if answered == 0 {"),
    ("server_is_asked_at_the_start_only", K + "servers.rs", "        let found = match ask_all(monitors).await {", "        let found = match ask_all(&monitors[..0]).await {"),
    ("entry_of_a_later_version_is_taken_for_damage", K + "jet_stream.rs", "Some(said) if said.parse().is_ok_and(|said| version.reads(said)) => Ok(()),", "Some(said) if said.len() < 99 => Ok(()),"),
    ("takeover_with_what_was_heard_before", K + "definitions.rs", "match self.wait_until(is_heard, limits::DEFINITIONS_WAIT).await {", "match self.wait_until(|| is_heard() || newest > 0, limits::DEFINITIONS_WAIT).await {"),
    ("later_queue_stands_for_one_that_was_not_heard", K + "definitions.rs", "self.state.lock().known.get(name).is_some_and(|(known, _)| *known >= revision);", "!name.as_str().is_empty() && self.state.lock().known.values().any(|(known, _)| *known >= revision);"),
    ("entry_that_was_given_up_counts_as_not_taken", S + "shared_log.rs", "            return Err(Fault::Replaced);\n        }\n        Ok(None)", "            return Ok(Some(false));\n        }\n        Ok(None)"),
    ("folder_of_another_cluster_is_taken", K + "shape.rs", "Ok(found) if found == options.cluster => Ok(()),", "Ok(found) if !found.is_empty() => Ok(()),"),
    ("full_disk_stops_a_partition_for_good", K + "partition.rs", "if !may_pass(&error) {", "if true {"),
    ("stopped_partition_is_given_back_to_its_node", K + "taking_over.rs", "let can = !heard.beat.drains && !heard.stopped.contains(&partition) && !is_behind;", "let can = !heard.beat.drains && !is_behind;"),
    ("name_that_is_taken_is_had_twice", K + "hearing.rs", "matches!(signal, Some(NodeSignal::Alive { node, .. }) if node == options.node)", "matches!(signal, Some(NodeSignal::Alive { node, .. }) if node.is_empty() && !options.node.is_empty())"),
    ("node_that_hung_goes_on_beside_its_namesake", K + "leases.rs", "if self.state().entered.is_some_and(|revision| revision < entry.revision) {", "if self.state().entered.is_some_and(|revision| revision > entry.revision) {"),
    ("epochs_are_not_told", K + "serving.rs", "        self.epoch.store(epoch, Ordering::Relaxed);\n", "        let _ = epoch;\n"),
    ("given_up_by_a_partition_that_has_not_heard_of_its_queue", K + "handing_over.rs", "SendRefusal::QueueNotFound(_) => HandoverResult::NoQueue(refusal.to_string()),", "SendRefusal::QueueNotFound(_) => HandoverResult::Never(refusal.to_string()),"),
    ("refused_elsewhere_and_forgotten", K + "handing_over.rs", "refusal => HandoverResult::Never(refusal.to_string()),", "_ => HandoverResult::Done(Vec::new()),"),
    ("copies_of_a_message_in_several_partitions", K + "hashing.rs", "queue.topic_of_subscription().unwrap_or(queue.as_str()).as_bytes()", "queue.as_str().as_bytes()"),
    ("moved_copy_stays_where_it_was_sent", K + "wrapping.rs", "        wrap_foreign(&mut fanout.copies, is_foreign);\n", ""),
    ("moved_copy_keeps_a_place_it_cannot_have", K + "wrapping.rs", "foreign.for_each(|copy| copy.place = Place::Arrival);", "drop(foreign);"),
    ("rules_written_over_those_of_another_node", K + "topic_changes.rs", "if bucket_revision(*revision) != self.revision {", "if bucket_revision(*revision) > self.revision {"),
    ("topic_of_the_same_name_takes_the_answers_of_the_one_before", K + "topic_changes.rs", "number: topic_revision(behind), created_at", "number: topic_revision(behind.min(0)), created_at"),
    ("deleted_topic_stays_in_partitions", K + "enforcing.rs", "let removed = refusal_of(remove_topic(client, name).await)?;", "let removed = Ok::<(), String>(());\n            let _ = remove_topic;"),
    ("once_is_placed_by_its_key", K + "placing.rs", "self.once(self.of_origins(&verb.topic, &verb.fanout), &verb.topic, &verb.key)", "self.once(CommandPlace::Any, &verb.topic, &verb.key)"),
    ("rule_changed_and_answered_before_others_have_it", K + "defining_topics.rs", "                _ => self.wherever_it_goes_on(name, revision).await?,", "                _ => {}"),
    ("what_came_later_overtakes_what_is_asked_again", K + "lane.rs", "        state.route = None;\n", ""),
    ("batch_that_is_partly_done_is_said_to_be_undone", K + "splitting.rs", "if is_partly_done { partly(&why) } else { why }", "if is_partly_done && false { partly(&why) } else { why }"),
    ("process_that_hung_answers_for_its_namesake", K + "nodes.rs", "node.{node}.{incarnation:016x}\", self.cluster)", "node.{node}.{:016x}\", self.cluster, incarnation & 0)"),
    ("node_that_is_not_alive_is_asked", K + "leases.rs", "state.nodes.get(node).filter(|_| is_there)", "state.nodes.get(node).filter(|_| is_there || !is_there)"),
    ("what_was_handed_over_is_forgotten_at_once", R + "hand_over.rs", "mark.kept.insert(at, KeptHandover { number, digest });", "let _ = (at, KeptHandover { number, digest });"),
    ("owner_of_an_outbox_that_was_deposed_hands_over", R + "hand_over.rs", "if epoch < before.epoch {", "if epoch + 1 < before.epoch {"),
    ("what_is_settled_in_an_outbox_is_kept_elsewhere", K + "handing_over.rs", "            if outbox.is_gone(number).await {\n", "            if outbox.is_gone(number).await && number.get() == 0 {\n"),
    ("clock_that_is_ahead_says_what_has_passed", E + "clocks.rs", "reading.wall.since(stamp.wall).min(most)", "reading.wall.since(stamp.wall).max(most)"),
    ("nobody_has_seen_the_last_entry_come", K + "watched_log.rs", "absent_at: self.end_at,", "absent_at: self.end_at.filter(|_| false),"),
    ("end_of_an_engine_is_not_written_down", E + "writer.rs", "if gathered.notes_time || !gathered.closing.is_empty() {", "if gathered.notes_time {"),
    ("what_is_flushed_does_not_say_when", E + "writer.rs", "            self.store.set_stamp(self.clocks.stamp());\n            job", "            job"),
    ("nothing_is_written_down_for_a_node_that_has_come", K + "serving.rs", "                client.note_time();\n", "                let _ = &client;\n"),
    ("too_few_servers_are_enough", K + "servers.rs", "        health.note(monitors.len() - found.len(), monitors.len());\n", "        health.note(monitors.len(), monitors.len());\n"),
    ("request_waits_for_its_log_for_ever", K + "answering.rs", "let most = wait.saturating_add(limits::OWN_ANSWER);", "let most = wait.saturating_add(limits::OWN_ANSWER * 99);"),
    ("stopped_partition_keeps_all_from_being_defined", K + "defining.rs", "Err(Unavailable::PartitionStopped { .. }) if passes_stopped => Ok(false),", "Err(Unavailable::PartitionStopped { .. }) if passes_stopped && false => Ok(false),"),
    ("queue_is_deleted_though_a_partition_keeps_it", K + "defining.rs", "self.define_in_all(name, revision, false).await", "self.define_in_all(name, revision, true).await"),
    ("what_is_not_counted_is_not_said", K + "looking.rs", "view.missing_partitions.clone_from(&missing)", "drop((view, &missing))"),
    ("stopped_partition_is_left_out_of_a_list", K + "looking.rs", "matches!(look, LookFor::Queues { .. } | LookFor::Queue { .. })", "matches!(look, LookFor::Queues { .. } | LookFor::Queue { .. } | LookFor::Workflows { .. })"),
    ("one_partition_takes_the_places_of_all", K + "request_places.rs", "let share = partition.and_then(|partition| self.partitions.get(usize::from(partition)));", "let share = partition.and_then(|_| self.partitions.first());"),
    ("moved_to_a_node_that_drains", K + "overview.rs", "            None if drains => Err(ClusterError::NodeDrains { node: name }),\n", "            None if drains && name.is_empty() => Err(ClusterError::NodeDrains { node: name }),\n"),
    ("another_cluster_is_monitored", K + "server_identity.rs", "known.cluster.is_some() && known.cluster == monitored.cluster", "known.cluster == monitored.cluster"),
    ("beginning_of_a_page_is_taken_for_the_page", K + "looking.rs", "NodeReply::FoundBeginning(found) => (*found, true),", "NodeReply::FoundBeginning(found) => (*found, false),"),
    ("deposed_node_renews_locks", K + "lease_proof.rs", "confirmed.is_some_and(|at| self.clock.elapsed().saturating_sub(at) <= self.lease())", "confirmed.is_none_or(|at| self.clock.elapsed().saturating_sub(at) <= self.lease() * 99)"),
    ("deposed_node_renews_locks_as_the_bucket_says", K + "lease_proof.rs", "            client.note_time();\n", "            if true {\n                return true;\n            }\n"),
    ("given_to_who_cannot_take_it_yet", K + "taking_over.rs", "let can = !heard.beat.drains && !heard.stopped.contains(&partition) && !is_behind;", "let can = !heard.beat.drains && !heard.stopped.contains(&partition);"),
    ("deposed_node_refuses_by_what_it_has", K + "answering.rs", "partition.watched().has_taken_since(asked) || self.leases.surely_has(partition.number()).await", "partition.watched().has_taken_since(asked) || self.leases.has(partition.number())"),
    ("one_request_without_an_answer_ends_all_handlers", "src/error/fault.rs", "matches!(self, Unavailable::Closed | Unavailable::Stopped(_))", "!self.is_of_request()"),
    ("later_line_takes_the_room_of_an_earlier_one", "src/server/batch.rs", "if !self.in_order || !problem.may_come_again()", "if !self.in_order || problem.may_come_again()"),
    ("receiver_loses_its_place_before_a_full_inbox", "src/engine/inbox.rs", "        let mut pending = self.post(Request::Ask(letter), 0).await?;\n", "        let mut pending = self.post(Request::Ask(letter), 0).await?;\n        pending.withdraw();\n"),
    ("names_grow_without_a_bound", K + "definitions.rs", "self.state.lock().known.len() < names_max", "self.state.lock().known.len() < names_max.max(99)"),
    ("newer_version_is_written_before_all_nodes_are_known", K + "entry_version.rs", "(is_all && read > written)", "read > written"),
    ("older_node_is_not_heard", K + "leases.rs", "heard.map(|heard| heard.beat.entry_version).min()", "heard.map(|heard| heard.beat.entry_version).max()"),
    ("version_of_an_entry_is_not_said", K + "jet_stream.rs", "if let Some(version) = self.version.in_header() {", "if let Some(version) = self.version.in_header().filter(|version| *version > 99) {"),
    ("what_was_settled_before_a_transaction_is_answered_again", R + "settlements.rs", "        self.answered_from = self.noted();", "        self.answered_from = 0;"),
    ("what_is_hidden_too_late_stays_hidden", K + "receiving.rs", "given.extend(shown.iter().map(|shown| offer_hidden(queue, shown)));", "given.extend(shown.iter().take(0).map(|shown| offer_hidden(queue, shown)));"),
    ("entity_loses_what_is_said_of_it_with_a_partition", B + "creation_instant.rs", "may_be_earlier: !view.missing_partitions.is_empty()", "may_be_earlier: false"),
    ("deposed_node_refuses_receivers_by_what_it_has", K + "receiving.rs", "if !had.unwrap_or_default() {", "if !had.unwrap_or_default() && false {"),
    ("queue_of_a_subscription_that_is_gone_stays", R + "topic_plan.rs", "                self.remove_queue_only(&queue)?;\n", "                let _ = queue;\n"),
    ("properties_of_an_abandoned_dead_letter_are_lost", R + "dead_letters.rs", "                workflow.change_properties(self, sequence, properties)?;\n                self.note_failure", "                self.note_failure"),
    ("operator_sets_the_state_under_a_holder", R + "operate.rs", "        if self.locks.of(&workflow.key).is_some() {\n            return refuse(OperateRefusal::WorkflowLocked);", "        if self.locks.of(&workflow.key).is_some() && false {\n            return refuse(OperateRefusal::WorkflowLocked);"),
    ("cancelled_message_takes_the_id_of_a_later_one", R + "send.rs", ".filter(|known| known.sequence == sequence);", ".filter(|known| known.sequence >= sequence);"),
    ("rescheduled_to_the_past_has_lived_since_then", R + "schedule.rs", "let begins = at.max(self.wall);", "let begins = at;"),
    ("id_of_what_came_too_late_is_not_known", R + "send.rs", "        self.counters(queue.id)?.counts.accepted += 1;\n        self.remember_id(queue, sequence, &new)?;", "        self.counters(queue.id)?.counts.accepted += 1;"),
    ("gap_is_not_judged_behind_a_completion_that_sends", R + "settle.rs", "        OpenWorkflow::open(self, &queue, stream)?.close(self)?;\n", "        let _ = (queue, stream);\n"),
    ("deferred_message_is_not_waited_for_by_who_settles_apart", R + "settle.rs", "            && !options.hold_on_defer", "            && (options.hold_on_defer || true)"),
    ("redriven_as_new_finds_no_room", R + "redrive.rs", "let judged = Judge::draining().judge(", "let judged = Judge::default().judge("),
    ("bytes_that_wait_early_are_not_bounded", R + "early.rs", "self.early_bytes + self.unfollowed_bytes <= options.early_bytes_max", "self.early_bytes + self.unfollowed_bytes <= options.early_bytes_max.max(1 << 40)"),
    ("holder_has_any_number_ahead", R + "accepted.rs", "let room = limits::ACCEPTED_AHEAD_MAX.saturating_sub(out);", "let room = limits::ACCEPTED_AHEAD_MAX.saturating_sub(out * 0);"),
    ("holder_is_handed_what_another_workflow_has_deferred", R + "accepted.rs", "if self.deferred(&workflow.queue, *sequence)?.stream != workflow.key.stream {", "if self.deferred(&workflow.queue, *sequence)?.stream != workflow.key.stream && false {"),
    ("recalled_workflow_does_not_know_what_it_has_completed", R + "recall.rs", "            self.record.done = cursor.done;", "            self.record.done = cursor.done.min(0);"),
    ("rate_is_due_for_nothing", E + "upcoming.rs", "            && records.counters(*queue)?.counts.ready > 0\n", ""),
    ("rule_that_was_added_meanwhile_is_lost", R + "topics.rs", "        if topic.revision != revision {\n            return refuse(TopicRefusal", "        if topic.revision < revision {\n            return refuse(TopicRefusal"),
    ("who_waits_for_dead_letters_of_a_deleted_queue_waits_on", E + "turn.rs", "                        self.woken.insert(WaitsFor::DeadLetters(event.queue.clone()));\n", ""),
    ("changed_queue_is_no_longer_paused", R + "queues.rs", "        self.write_queue(QueueRecord { options, ..(*queue).clone() })?;", "        self.write_queue(QueueRecord { options, paused: false, ..(*queue).clone() })?;"),
    ("look_at_a_workflows_messages_is_no_use", E + "query.rs", "Query::Messages { .. } | Query::Live { .. } | Query::Offered { .. } | Query::Line { .. }\n", "Query::Messages { .. } | Query::Live { .. } | Query::Offered { .. }\n"),
    ("properties_set_with_an_end_by_id_are_lost", E + "client/outcome.rs", "            properties.extend(changed);", "            properties.extend(changed.into_iter().take(0));"),
    ("batch_that_handled_nothing_is_given_back", P + "batch.rs", "        if done == 0 && outcome.next.is_none() {", "        if done == 0 && outcome.next.is_none() && readable == 0 {"),
    ("unreadable_messages_are_completed_with_the_others", P + "batch.rs", "let done = outcome.handled.min(readable);", "let done = outcome.handled.min(readable.max(run.messages().len()));"),
    ("lock_is_renewed_for_ever", P + "renewal.rs", "        left = if waits { left } else { left - pause };", "        left = if waits { left } else { left - pause.min(std::time::Duration::ZERO) };"),
]

# The tests, those that catch most first; a bug that is caught is not tried with the others.
# The library alone builds in a fraction of the time.
ALONE = "--no-default-features"
LIBRARY = [[ALONE, "--lib"], [ALONE, "--test", "scripts", "--test", "model", "--test", "promises", "--test", "older"]]
DAEMON = [["--test", "end_to_end", "daemon::"], ["--lib"]]
CLUSTER = [["--features", "cluster", "--lib", "cluster::"]]

# Much is built and little is run: a part of what the tests usually try.
ENVIRONMENT = {
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
    if wanted == {"--places"}:
        sys.exit(check_places(root))
    unknown = wanted.difference(name for name, *_ in BUGS)
    if unknown:
        sys.exit(f"no such bug: {', '.join(sorted(unknown))}")
    survivors, started = [], time.monotonic()
    bugs = [bug for bug in BUGS if not wanted or bug[0] in wanted]
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder) / "copy"
        subprocess.run(["git", "clone", "-q", str(root), str(copy)], check=True)
        for of_room in (LIBRARY, DAEMON, CLUSTER):
            if any(targets_for(path) is of_room for _, path, _, _ in bugs):
                check_sound(copy, of_room)
        for number, (name, path, before, after) in enumerate(bugs, 1):
            outcome = plant(copy, path, before, after)
            print(f"{number:3}/{len(bugs)} {name:36} {outcome}", flush=True)
            if not outcome.startswith("caught"):
                survivors.append(name)
    print(f"{len(bugs) - len(survivors)} of {len(bugs)} caught in {time.monotonic() - started:.0f} s")
    sys.exit(1 if survivors else 0)


def check_places(root):
    """Prints the bugs whose place is not there exactly once; 1 if there are some, as an exit code."""
    lost = [problem for problem in (no_place(root, path, before) for _, path, before, _ in BUGS) if problem]
    print("\n".join(lost + [f"{len(BUGS) - len(lost)} of {len(BUGS)} planted bugs have a place"]))
    return 1 if lost else 0


def no_place(root, path, before):
    """Why a bug cannot be planted; None if it can."""
    found = (root / path).read_text().count(before)
    return None if found == 1 else f"stands {found} times in {path}: {before!r}"


def targets_for(path):
    """The tests that could catch a bug in this file."""
    if path.startswith(K):
        return CLUSTER
    return LIBRARY if path.startswith((E, P, "src/deadlines.rs")) else DAEMON


def environment(copy):
    return dict(os.environ, CARGO_TARGET_DIR=str(copy.parent / "target"), **ENVIRONMENT)


def check_sound(copy, all_targets):
    """Builds and runs everything once without a bug, however long that takes: what fails then would catch any bug."""
    for targets in all_targets:
        for building in (["--no-run"], []):
            command = ["cargo", "test", "-q", *building, *targets]
            if subprocess.run(command, cwd=copy, env=environment(copy)).returncode != 0:
                sys.exit(f"nothing is planted: without a bug, this fails: {' '.join(command)}")


def plant(copy, path, before, after):
    """Plants one bug, runs the suite, and takes the bug out again."""
    file = copy / path
    text = file.read_text()
    problem = no_place(copy, path, before)
    if problem:
        return f"NOT PLANTED: {problem}"
    file.write_text(text.replace(before, after))
    env = environment(copy)
    try:
        for targets in targets_for(path):
            built = run(["cargo", "test", "-q", "--no-run", *targets], copy, env)
            if built is None or built.returncode != 0:
                return "NOT BUILT: " + (built.stderr.strip().splitlines() or ["?"])[0] if built else "NOT BUILT"
            tested = run(["cargo", "test", "-q", *targets], copy, env)
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
        stdout, stderr = child.communicate(timeout=900)
        return subprocess.CompletedProcess(command, child.returncode, stdout, stderr)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        child.communicate()
        return None


if __name__ == "__main__":
    main()
