// Which event meets which need.
import type { PolicyEvent, PolicyNeed } from './policy-step.ts';

const EVENT_OF = {
  'check-password': 'password-checked',
  'verify-jwt': 'jwt-verified',
  'open-cookie': 'cookie-opened',
  'begin-login': 'login-begun',
  'finish-login': 'login-finished',
  'hold-body': 'body-held',
  'take-token': 'token-taken',
} as const satisfies Record<PolicyNeed['kind'], PolicyEvent['kind']>;

/** `failed` meets every need, and `body-too-large` that for a body. */
export const isAnswerTo = (event: PolicyEvent, need: PolicyNeed['kind']): boolean =>
  event.kind === EVENT_OF[need] || event.kind === 'failed' || (event.kind === 'body-too-large' && need === 'hold-body');
