export { ModelError } from "./ModelError.js"
export {
  VercelModel,
  type Answer,
  type ObjectOptions,
  type TextOptions,
  type VercelModelService,
} from "./VercelModel.js"
