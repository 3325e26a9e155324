export { isAddress, normalizeAddress } from './accounts/email-address.ts';
export { judgeLogin, type LoginVerdict } from './accounts/login-verdict.ts';
export { decideMailRetry } from './accounts/mail-retry.ts';
export { type HashCost, isHashTooCheap, problemOfPassword } from './accounts/password-rules.ts';
export { decideRefresh, type RefreshDecision } from './accounts/refresh-rotation.ts';
export { type Admission, decideAdmission, type WantedEndpoint, type WantedGroup } from './admission.ts';
export { afterConnect, afterFailure, type BackoffRules, type BackoffState, CALM } from './backoff.ts';
export { billingMonth, monthEnd, monthOf } from './billing/billing-month.ts';
export { estimateCents, isPayg, usageCents } from './billing/rating.ts';
export { CAP_NOTICES, type CapNotice, type CapState, capState, showDollars } from './billing/spend-cap.ts';
export {
  isGraceOver,
  nextSubscription,
  PAST_DUE_GRACE_MS,
  type SubscriptionEffect,
  type SubscriptionState,
  type SubscriptionStep,
} from './billing/subscription.ts';
export { ConnectionCounts, type ConnectionLimits, type ConnectionVerdict } from './connection-counts.ts';
export { FailureWindow } from './failure-window.ts';
export { GroupDirectory } from './groups/group-directory.ts';
export { isGroupProtocol, refuseGroupFields } from './groups/group-request.ts';
export { GroupSeries, type GroupSeriesValues } from './groups/group-series.ts';
export {
  type GroupEffect,
  type GroupEvent,
  type GroupMember,
  type GroupProtocol,
  TunnelGroup,
} from './groups/tunnel-group.ts';
export { type HealthEvent, MemberHealth, type ProbeKind } from './health/member-health.ts';
export { type HealthReport, type ProbedHealth, ProbeStreak } from './health/probe-streak.ts';
export * from './http1/index.ts';
export { API_KEY_RANDOM_BYTES, isApiKey, makeApiKey } from './keys/api-key.ts';
export { judgeLiveness } from './liveness.ts';
export { generateName } from './names/generate-name.ts';
export { NameLeases, type WantedName } from './names/name-leases.ts';
export { subdomainOf } from './names/subdomain-of-host.ts';
export { problemOfAddress } from './net/address-guard.ts';
export { type CallerAddress, callerAddressOf, hostPort, plainAddress, TrustedProxies } from './net/caller-address.ts';
export { mayAlertPrivate } from './net/may-alert-private.ts';
export { maySee, type Owner, ownerKey, sameOwner } from './owner.ts';
export { PortLeases, type WantedPort } from './port-leases.ts';
export { endpointKey, type LeasedEndpoint, type PublicEndpoint, sameEndpoint } from './public-endpoint.ts';
export {
  findTunnel,
  type SessionEffect,
  type SessionEvent,
  type SessionState,
  type SessionTunnel,
  startSession,
  transitionSession,
} from './session-life.ts';
export { lastUtcDays } from './usage/utc-days.ts';
