export { isOffered, runCase, type Case, type Law } from "./Case.js"
export type { Feature, Harness, OpenStore } from "./Harness.js"
export { cases, storeConformance } from "./storeConformance.js"
export type { Bench } from "./internal/bench.js"
