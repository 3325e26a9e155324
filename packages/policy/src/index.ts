export { type CompiledPolicy, compilePolicy } from './compile/compile.ts';
export { renderPolicyAnswer } from './compile/policy-answers.ts';
export { applyRequestChanges, withoutEdgeCookies } from './edits/apply-request-changes.ts';
export { editedEdgeResponse, editedHead } from './edits/response-edits.ts';
export { POLICY_BOUNDS } from './limits.ts';
export { clearedCookies, loginCookie, pendingCookie } from './login/login-cookies.ts';
export {
  CALLBACK_PATH,
  checkCallback,
  loginState,
  namedClaims,
  type PendingLogin,
  pendingLogin,
  queryValues,
  sessionFrom,
} from './login/login-machine.ts';
export {
  type Auth,
  actionOf,
  type JwtAuth,
  type LoginAuth,
  type LoginProvider,
  type Match,
  type Policy,
  type Rule,
} from './policy.ts';
export type {
  Answer,
  HeaderPair,
  LoggedIn,
  Pass,
  PolicyDigests,
  PolicyEffect,
  PolicyEvent,
  PolicyRequest,
  PolicyState,
  PolicyStep,
  RequestChanges,
  ResponseEdit,
  RuleRef,
} from './policy-step.ts';
export { begin, decideConnection, resume } from './run/evaluate.ts';
export { limiterKeyOf } from './run/limiter-key.ts';
export type { PolicyLists } from './run/policy-run.ts';
export type { FileLogin, FilePolicy, FileRule } from './schema/file-policy.ts';
export { problemsOfPolicy, warningsOfPolicy } from './schema/policy-checks.ts';
export { policyHash } from './schema/policy-hash.ts';
export { type PolicyProblem, problemsOfIssues, problemText } from './schema/policy-problems.ts';
export { filePolicySchema, wirePolicySchema } from './schema/policy-schema.ts';
export { guardWords, summaryOf } from './schema/rule-summary.ts';
export { canonicalJson } from './text/canonical-json.ts';
