export { EffectModel, type UsageOptions } from "./EffectModel.js"
