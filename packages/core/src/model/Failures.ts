/**
 * How control flow fails. A workflow that lists one of these in its `failure` hands it to its clients by its tag; otherwise they
 * get `RunFailed`, with the tag in its details.
 */
import * as Schema from "effect/Schema"

/**
 * A person rejected what was shown to them, and the review says `onReject: "fail"`.
 *
 * @category failures
 * @since 0.1.0
 */
export class ReviewRejected extends Schema.TaggedError<ReviewRejected>()("ReviewRejected", {
  step: Schema.String,
  by: Schema.String,
  reason: Schema.NullOr(Schema.String),
}) {
  override get message() {
    return `'${this.step}' was rejected by ${this.by}${this.reason === null ? "" : `: ${this.reason}`}`
  }
}

/**
 * Nobody decided before the deadline, and the review says `onTimeout: "fail"`.
 *
 * @category failures
 * @since 0.1.0
 */
export class ReviewExpired extends Schema.TaggedError<ReviewExpired>()("ReviewExpired", { step: Schema.String }) {
  override get message() {
    return `nobody decided on '${this.step}' before its deadline`
  }
}

/**
 * No signal came in time, and the wait says `onTimeout: "fail"`.
 *
 * @category failures
 * @since 0.1.0
 */
export class SignalTimeout extends Schema.TaggedError<SignalTimeout>()("SignalTimeout", {
  step: Schema.String,
  signal: Schema.String,
}) {
  override get message() {
    return `no signal '${this.signal}' came in time for '${this.step}'`
  }
}

/**
 * Data that a step has read has moved since, and the step says `onStale: "fail"`. `name` is that of the data, `key` what of it, as JSON.
 *
 * @category failures
 * @since 0.1.0
 */
export class StaleData extends Schema.TaggedError<StaleData>()("StaleData", {
  step: Schema.String,
  name: Schema.String,
  key: Schema.String,
}) {
  override get message() {
    return `data '${this.name}' (${this.key}) that '${this.step}' has read has moved since`
  }
}

/**
 * The window of a run is too large, and was not made small enough by what compacts it. The step that has made it so is kept.
 *
 * *Shape.* `step` is the path of that step, or `(window)` where the run began with it. `bytes` is what the window takes as JSON in
 * UTF-8, once compacted where it could be, and `maxBytes` what its workflow allows.
 *
 * @category failures
 * @since 0.1.0
 */
export class WindowTooLarge extends Schema.TaggedError<WindowTooLarge>()("WindowTooLarge", {
  step: Schema.String,
  bytes: Schema.Number,
  maxBytes: Schema.Number,
}) {
  override get message() {
    return `after '${this.step}' the window takes ${this.bytes} bytes as JSON and at most ${this.maxBytes} are allowed; have compact make it smaller, keep less in it, or raise maxBytes, and retry the run`
  }
}

/**
 * A loop was not done after its last turn, and says `onLimit: "fail"`.
 *
 * @category failures
 * @since 0.1.0
 */
export class LoopLimitReached extends Schema.TaggedError<LoopLimitReached>()("LoopLimitReached", {
  step: Schema.String,
  maxIterations: Schema.Number,
}) {
  override get message() {
    return `loop '${this.step}' was not done after ${this.maxIterations} turns`
  }
}
