export { allowsRedirectUri, hostOfUri, isHostAsShown, problemOfRedirectUri, withAnswer } from './redirect-uri.ts';
export {
  decideRefresh,
  type HashCost,
  isAddress,
  isHashTooCheap,
  judgeLogin,
  type LoginVerdict,
  normalizeAddress,
  problemOfPassword,
  type RefreshDecision,
  type RefreshRules,
} from './sign-in.ts';
