export { Workflow, type AnyWorkflow } from "./builder/Workflow.js"
export type {
  AnyFlow,
  Approved,
  ChildSpec,
  Expired,
  ForEachSpec,
  Item,
  ItemError,
  Items,
  LoopSpec,
  Rejected,
  ReviewSpec,
  SignalSpec,
  Turned,
} from "./builder/Control.js"
// What the types of exported flows and fragments are made of: a declaration file has to be able to name it.
export type {
  Adds,
  BranchResult,
  EarlyEnd,
  ItemScope,
  ItemsResult,
  ParallelResult,
  ReviewResult,
  SignalResult,
  TurnScope,
} from "./builder/Control.js"
export type { Closed, Ended, Flow, Fragment, Whole } from "./builder/Flow.js"
export type { Outcome, Result, SchemaResult, StepContext, StepInput } from "./builder/Results.js"
export type { ChangesWindow, CompactContext, CompactSpec, SeesWindow, WindowSpec } from "./builder/Window.js"
export { Plan, type ComputedContext, type ComputedStep, type ComputedWindow } from "./builder/Plan.js"
export { compile } from "./compiler/Compiler.js"
export { fromLegacySchema, type LegacyFunctions, type LegacySchema } from "./dsl/LegacySchema.js"
export { Live, type LiveValue } from "./dsl/Live.js"
export {
  DataVersion,
  type AnyDataVersion,
  type Captured,
  type DataSource,
  type Json,
  type QueryText,
  type ReadsData,
} from "./dsl/DataVersion.js"
export { Effects, type AnyEffect, type Local, type Read, type Transaction } from "./dsl/Effects.js"
export { Idempotency, type IdempotencyHeaderOptions } from "./dsl/Idempotency.js"
export type { Limits, Priority } from "./dsl/Limits.js"
export { OnUnknown, type OnUnknownLimits } from "./dsl/OnUnknown.js"
export {
  handlerTag,
  Operation,
  type AnyOperation,
  type Checked,
  type External,
  type Handler,
  type HandlerCheck,
  type HandlerContext,
  type MemberOperation,
  type Performs,
} from "./dsl/Operation.js"
export { Output, type Unvalidated } from "./dsl/Output.js"
export { RetryLater } from "./dsl/RetryLater.js"
export type { OnInvalid, OnStale, RejectedOutput, RetryOptions, StepOptions } from "./dsl/StepOptions.js"
export type { Budget } from "./dsl/Budget.js"
export { Usage, type PaidCall, type PaidPromise, type UsageReport } from "./dsl/Usage.js"
export { codecOf, isSchema, type AnySchema, type Codec, type Gated } from "./model/Codec.js"
export { diagnosticCodes, type Diagnostic, type DiagnosticCode } from "./model/DiagnosticCode.js"
export {
  AnswerRefused,
  ClientClosed,
  CompileError,
  DecisionRefused,
  ForkRefused,
  InvalidId,
  InvalidSchedule,
  InvalidValue,
  LeaseLost,
  NotPerformed,
  RetryRefused,
  RunCanceled,
  RunConflict,
  RunFailed,
  RunNotFound,
  RunParked,
  SignalRefused,
  StepMisuse,
  StepThrew,
  StepTimeout,
  StoreError,
  TransactionAborted,
  type ErrorDetails,
  type RepeatedEffect,
  type ParkReason,
} from "./model/Errors.js"
export {
  LoopLimitReached,
  ReviewExpired,
  ReviewRejected,
  SignalTimeout,
  WindowTooLarge,
  StaleData,
} from "./model/Failures.js"
export { checkId, defaultNamespace, escapeSegment, fingerprint, idempotencyKey } from "./model/Ids.js"
export type {
  AttemptRecord,
  EffectRecord,
  EffectState,
  FailureRecord,
  HeldLease,
  Lease,
  OpenState,
  ParkRecord,
  RunRecord,
  RunState,
  RunStatus,
  SignalRecord,
  StepRecord,
  WaitRecord,
} from "./model/Records.js"
export type { CallEnd, CallRecord, ModelPrice, Prices, UsageAmounts } from "./model/Usage.js"
export {
  planFormat,
  type PlanControl,
  type PlanEffect,
  type PlanNode,
  type PlanOperation,
  type PlanStep,
  type PlanWindow,
} from "./model/Plan.js"
export { StoreWithTransactions } from "./model/StoreWithTransactions.js"
export type { Capabilities } from "./store/Capabilities.js"
export type {
  AnswerRow,
  AttemptRow,
  CancelResult,
  CheckpointDriver,
  ClaimRequest,
  CommitResult,
  CommitRows,
  DecideResult,
  DecisionRow,
  EffectWrite,
  ForkRow,
  ListedRow,
  LoadedRows,
  LoadedSignals,
  LoadedWaits,
  NewRunRow,
  NewSignalRow,
  OldOutputs,
  OpenRows,
  OutcomeRow,
  ParkedPage,
  ParkedRow,
  PauseResult,
  PerformedRow,
  ReopenRow,
  ReviewRow,
  ReviewsPage,
  RunPatch,
  RunRow,
  RunsPage,
  SendResult,
  StepsQuery,
  TransactionAccess,
  TransactionEnd,
  TransactionLimits,
  WaitWrite,
} from "./store/CheckpointDriver.js"
export {
  CheckpointStore,
  type Answer,
  type CheckpointStoreService,
  type Commit,
  type ListedRecord,
  type ParkedRecord,
  type Reopen,
} from "./store/CheckpointStore.js"
export {
  counting,
  type BeginCallResult,
  type CallRow,
  type CallsPage,
  type CallsQuery,
  type CallSumRow,
  type Counted,
  type Counter,
  type EndCallRow,
  type NewCallRow,
  type SpendRow,
} from "./store/CallRows.js"
export type {
  ClaimLimits,
  FireResult,
  FireSchedule,
  NewScheduleRow,
  NextSchedules,
  SchedulePage,
  ScheduleRow,
} from "./store/FlowRows.js"
export type { History, HistoryQuery, HistoryRows } from "./store/HistoryRows.js"
export type { RewindResult, RewindRow } from "./store/RewindRows.js"
export { contextFromDriver, fromDriver } from "./store/fromDriver.js"
export { MemoryDriver } from "./store/MemoryDriver.js"
export { MemoryStore } from "./store/MemoryStore.js"
export { Cairn } from "./runtime/Cairn.js"
export type { CairnClient, OpenOptions, PromiseRunHandle } from "./runtime/Client.js"
export type { ResultError, RunEventsOptions, RunHandle, RunSnapshot } from "./runtime/RunHandle.js"
export type { StartError, StartOne, StartOptions } from "./runtime/Starting.js"
export type {
  AcceptedOutput,
  AnswerOptions,
  OutcomeAnswer,
  ParkedOptions,
  ParkedRun,
  RejectedAttempt,
  UnknownOperation,
} from "./runtime/Answers.js"
export {
  Events,
  type EventsOptions,
  type RunEvent,
  type ServerSentEventsOptions,
  type StepKind,
} from "./runtime/Events.js"
export type { LiveEvent } from "./runtime/LiveOutput.js"
export type { ReviewDecision, ReviewOptions } from "./runtime/Reviews.js"
export type { SignalOptions } from "./runtime/Signals.js"
export type { ForkOptions, RunOptions } from "./runtime/Lifecycle.js"
export type { ListOptions, OpenReview, ReviewsOptions, RunSummary } from "./runtime/Listings.js"
export type { CancelOptions } from "./runtime/Cancel.js"
export type { CallsOptions, CostOptions, CostSum, PaidCallSummary, RunSpend } from "./runtime/Costs.js"
export type { Schedule, ScheduleOptions, SchedulesOptions, UnscheduleOptions } from "./runtime/Schedules.js"
export { faultPoints, Faults, type FaultPoint, type FaultSite, type FaultsService } from "./runtime/Faults.js"
export { WorkerMetrics, WriteBehindMetrics } from "./runtime/WorkerMetrics.js"
export { Worker, type WorkerOptions } from "./runtime/Worker.js"
export type { Durability } from "./dsl/Definition.js"
export { RunQueue, type AcceptedCommit, type Refusal } from "./runtime/RunQueue.js"
export { WriteBehind, type Bufferable, type CommitLog, type WriteBehindOptions } from "./runtime/WriteBehind.js"
