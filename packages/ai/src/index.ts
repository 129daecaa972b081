export { listPrices } from "./listPrices.js"
