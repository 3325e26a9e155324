export { PolicySource, readPolicySource } from './policy-source.ts';
export { type PlainPassword, type PolicyPath, resolvePolicy } from './resolve-policy.ts';
export { isShownPolicyKey } from './shown-policy-keys.ts';
