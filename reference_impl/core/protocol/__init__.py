"""The protocol of the papers: a coordinator, tasks with aligned barriers, sources, and two-phase commit.

Chandy and Lamport, "Distributed Snapshots" (1985); Carbone et al., "Lightweight Asynchronous Snapshots for Distributed
Dataflows" (arXiv:1506.08603); Gray, "Notes on Data Base Operating Systems" (1978), whose two-phase commit the sinks use
as Flink's do, by its documentation: a barrier is the request to prepare, and a complete checkpoint the decision.

Where each rule stands is below.  Recovery (ABS-6) is the job's: most of it stands in `lifecycle`.

ABS-1  trigger, position, barrier   checkpoint_coordinator.py: CheckpointCoordinator.create_checkpoint,
                                    CheckpointCoordinator.trigger_checkpoint
                                    ../lifecycle/job_records.py: JobRecords.save_then_trigger (the id is durable first)
                                    checkpoints.py: Checkpoints._trigger_tasks
                                    source.py: SourceTask.on_trigger, SourceTask._snapshot_and_barrier
                                    source.py: SourceTask.persist_current_state
                                    ../decisions/tasks.py: SourceCut.steps (position first)
ABS-2  alignment                    barrier_alignment.py: TABLE, Alignment.first_barrier, Alignment.next_barrier
                                    input_task.py: InputTask._on_barrier, InputTask.signal,
                                    InputTask._snapshot_and_barrier
                                    ../decisions/alignment.py: AwaitedBarriers.is_obsolete (late ones)
                                    ../../driver/queues.py: first_to_arrive (what waited comes first)
                                    ../extensions/operator_work.py: OperatorWork.snapshot (rows held back)
ABS-3  several checkpoints          ../job/config.py: Config (the number, the times, the tolerated failures)
                                    checkpoints.py: Checkpoints.create    checkpoints.py: Checkpoints.trigger
                                    (its timeout begins)
                                    checkpoint_coordinator.py: CheckpointCoordinator.on_interval_over,
                                    CheckpointCoordinator.on_pause_over, CheckpointCoordinator.on_checkpoint_timeout,
                                    CheckpointCoordinator._after_abort
                                    CheckpointCoordinator.on_record_stored (the pause begins)
                                    ../decisions/checkpointing.py: Triggering.allowed
                                    checkpoints.py: UnderWay.counted (savepoints do not count)
                                    ../lifecycle/checkpoint_failure_manager.py: CheckpointFailureManager.failed
                                    ../lifecycle/checkpoint_failure_manager.py: CheckpointFailureManager.completed,
                                    CheckpointFailureManager.attempt_over (they count in a row from there)
                                    ../decisions/checkpointing.py: Tolerance.failed_in_a_row
ABS-4  completion, abort            checkpoints.py: Checkpoints.acknowledge, Checkpoints.complete, Checkpoints.abort
                                    Checkpoints._awaiting (which acknowledgement counts: of its task's attempt)
                                    ../decisions/checkpointing.py: Triggering.plan (which tasks must acknowledge)
                                    task.py: Task.decline, Task._on_persist_failed
                                    ../lifecycle/coordinator.py: Coordinator._on_received (what else older attempts say)
                                    ../lifecycle/checkpoints_cleaner.py: CheckpointsCleaner.acknowledged (one that
                                    comes late, or of an older attempt)
                                    checkpoint_coordinator.py: CheckpointCoordinator.on_record_stored,
                                    CheckpointCoordinator._notify, CheckpointCoordinator.on_decline
                                    input_task.py: InputTask.on_abort    source.py: SourceTask.on_abort
                                    barrier_alignment.py: Alignment.remember, Alignment.skip_aborted
ABS-5  what a snapshot holds        task.py: Task.unkeyed_state    input_task.py: InputTask.current_snapshot
                                    source.py: SourceTask.unkeyed_state    checkpoints.py: Checkpoints._record_of
                                    sink.py: TransactionalSink.describe
                                    ../extensions/operator_work.py: OperatorWork.describe
                                    ../extensions/event_time.py: InputEventTime.describe (watermarks)
                                    ../extensions/event_time.py: SourceEventTime.describe
                                    ../operators/windows.py, ../operators/timers.py
                                    ../decisions/snapshots/contents.py: SnapshotContents.stored (all of it)
                                    ../decisions/snapshots/compatibility.py: refusal (a record that lacks a state)
                                    task.py: Task._on_load_failed (a handle that points to nothing)
ABS-6  failure and recovery         ../lifecycle/failover.py: Failover.on_lost, Failover.fail_over
                                    ../lifecycle/completed_checkpoint_store.py: CompletedCheckpointStore.to_restore
                                    ../decisions/checkpointing.py: RestoreChoice.choose (the newest complete one)
                                    ../lifecycle/execution.py: Execution.start, Execution.deploy
                                    ../lifecycle/taking_over.py: TakeOver (by another coordinator)
                                    ../lifecycle/deployment.py: Deployment.orders (which task restores which state)
                                    ../lifecycle/cancellation.py: Cancellation.end_attempt
                                    ../decisions/fencing.py: Fencing.addressed (nothing of a former job)
                                    ../../driver/control.py: reach_task (to the attempt that is named)
                                    task.py: Task.restore    attempts.py: Attempts
                                    ../decisions/tasks.py: Startup.steps    task.py: Task.open_inputs (state before
                                    input)
                                    source.py: SourceTask.adopt (reads from the positions of the snapshot)
                                    sink.py: TransactionalSink.on_restored (fences former attempts)
ABS-7  other guarantees             barrier_alignment.py: Alignment.initial, Alignment.count (nothing is blocked)
                                    barrier_alignment.py: Alignment.cancel_counted (older ones are still counted)
                                    source.py: SourceTask._read, SourceTask.restore (at-most-once saves its
                                    position before it sends, and does not rewind)
                                    checkpoint_coordinator.py: CheckpointCoordinator.on_all_running
                                    (at-most-once has no checkpoints)
                                    ../job/config.py: Config.blocking, Config.takes_checkpoints
                                    ../job/config.py: Config.check
ABS-8  asynchronous snapshots       task.py: Task.persist_once_in_flight_known, Task.persist
                                    input_task.py: InputTask.current_snapshot    ../decisions/tasks.py: Copying.copy
                                    ../backends/heap.py: HeapView    ../backends/lsm.py: LsmView (files never change)
ABS-11 two-phase commit             sink.py: TransactionalSink.snapshot, TransactionalSink._seal_current (prepare)
                                    ../decisions/commits.py: PreCommitting.steps
                                    ../extensions/sinks/store_requests.py: Requests.write_after (sealed, then written)
                                    sink.py: TransactionalSink.on_complete, TransactionalSink._commit
                                    ../decisions/commits.py: Committing.due
                                    sink.py: TransactionalSink._on_fenced (after a failure)
                                    ../decisions/commits.py: SinkRecovery.to_commit, SinkRecovery.to_abort
                                    sink.py: TransactionalSink._finish_if_settled

One checkpoint, from its trigger to the commit ("driver": an effect is carried out, and its answer comes as an event):

trigger         CheckpointCoordinator.on_interval_over, create_checkpoint; driver: its id is durable;
                trigger_checkpoint, Checkpoints.trigger; driver: a message to each source
source          SourceTask.on_trigger, _snapshot_and_barrier, Task.take_snapshot, SourceTask.persist_current_state,
                Task.persist, Task.barrier
alignment       InputTask._on_barrier, signal, Alignment.step, TABLE, Alignment.first_barrier, Alignment.next_barrier
snapshot        InputTask._snapshot_and_barrier, OperatorWork.snapshot, then as at a source; in a sink
                TransactionalSink.snapshot, which waits for the store, in place of Task.take_snapshot
acknowledgement Task.persist; driver: the snapshot is durable, a message to the coordinator;
                CheckpointCoordinator.on_ack, Checkpoints.acknowledge; with the last one Checkpoints._store_record
completion      driver: the record is durable; CheckpointCoordinator.on_record_stored, Checkpoints.complete
notification    CheckpointCoordinator._notify; driver: a message to each task; SourceTask.on_complete,
                InputTask.on_complete
commit          TransactionalSink.on_complete, _commit; driver: the store's answer; TransactionalSink.on_answered

Chandy and Lamport's general algorithm, on any graph, is chandy_lamport.py; nothing of the engine uses it.

A machine takes one event and returns effects.  A driver (`driver.runner`, `driver.coordination`) carries them out.  It
owes the machines this: channels are first in, first out and bounded; elements of a blocked channel wait in its queue
and come before later ones; a sink's requests reach the store in order, and one that it has not answered may have been
carried out; a message reaches only the attempt that it names (`driver.control`); what an effect orders
behind something durable happens behind it.

`parts` are the decisions that a planted defect may replace.  What the correct engine decides stands in `decisions`, and
in a comment where the decision is asked for.  Some branches, such as a step that is put off, are taken only with a
defect.  What the papers do not have, or leave open (unaligned checkpoints, the restart of a part, finished tasks,
savepoints and their life), stands in `extensions` and `lifecycle`.
"""
