export { Workflow, type AnyWorkflow } from "./builder/Workflow.js"
export type { AnyFlow, Flow, Fragment, Outcome, StepContext } from "./builder/Flow.js"
export { Plan, type ComputedContext, type ComputedStep } from "./builder/Plan.js"
export { compile } from "./compiler/Compiler.js"
export { fromLegacySchema, type LegacyFunctions, type LegacySchema } from "./dsl/LegacySchema.js"
export { Effects, type AnyEffect, type Local, type Read, type Transaction } from "./dsl/Effects.js"
export { Idempotency, type IdempotencyHeaderOptions } from "./dsl/Idempotency.js"
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
export type { OnInvalid, RetryOptions, StepOptions } from "./dsl/StepOptions.js"
export { codecOf, isSchema, type AnySchema, type Codec, type Gated } from "./model/Codec.js"
export { diagnosticCodes, type Diagnostic, type DiagnosticCode } from "./model/DiagnosticCode.js"
export {
  AnswerRefused,
  CompileError,
  InvalidId,
  InvalidValue,
  LeaseLost,
  NotPerformed,
  RunCanceled,
  RunConflict,
  RunFailed,
  RunNotFound,
  RunParked,
  StepMisuse,
  StepThrew,
  StepTimeout,
  StoreError,
  TransactionAborted,
  type ErrorDetails,
  type ParkReason,
} from "./model/Errors.js"
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
} from "./model/Records.js"
export { planFormat, type PlanEffect, type PlanNode, type PlanOperation } from "./model/Plan.js"
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
  EffectWrite,
  LoadedRows,
  LoadedSignals,
  NewRunRow,
  NewSignalRow,
  OpenRows,
  OutcomeRow,
  ParkedPage,
  ParkedRow,
  RunPatch,
  RunRow,
  SendResult,
  TransactionAccess,
  TransactionEnd,
  TransactionLimits,
} from "./store/CheckpointDriver.js"
export {
  CheckpointStore,
  type Answer,
  type CheckpointStoreService,
  type Commit,
  type ParkedRecord,
} from "./store/CheckpointStore.js"
export { contextFromDriver, fromDriver } from "./store/fromDriver.js"
export { MemoryDriver } from "./store/MemoryDriver.js"
export { MemoryStore } from "./store/MemoryStore.js"
export {
  Cairn,
  type CairnClient,
  type OpenOptions,
  type PromiseRunHandle,
  type ResultError,
  type RunHandle,
  type RunSnapshot,
  type StartOptions,
} from "./runtime/Cairn.js"
export type { AnswerOptions, OutcomeAnswer, ParkedOptions, ParkedRun, UnknownOperation } from "./runtime/Answers.js"
export type { CancelOptions } from "./runtime/Cancel.js"
export { faultPoints, Faults, type FaultPoint, type FaultSite, type FaultsService } from "./runtime/Faults.js"
export { WorkerMetrics, WriteBehindMetrics } from "./runtime/WorkerMetrics.js"
export { Worker, type WorkerOptions } from "./runtime/Worker.js"
export type { Durability } from "./dsl/Definition.js"
export {
  RunQueue,
  WriteBehind,
  type Bufferable,
  type CommitLog,
  type Refusal,
  type WriteBehindOptions,
} from "./runtime/WriteBehind.js"
