export { isAddress, normalizeAddress } from './accounts/email-address.ts';
export { judgeLogin, type LoginFacts, type LoginVerdict } from './accounts/login-verdict.ts';
export { decideMailRetry, type MailRetry, type MailRetryRules } from './accounts/mail-retry.ts';
export {
  type HashCost,
  isHashTooCheap,
  PASSWORD_MAX_BYTES,
  PASSWORD_MIN_CHARACTERS,
  problemOfPassword,
} from './accounts/password-rules.ts';
export {
  decideRefresh,
  type RefreshDecision,
  type RefreshRules,
  type ShownToken,
} from './accounts/refresh-rotation.ts';
export {
  type Admission,
  type AdmissionFacts,
  decideAdmission,
  problemOfName,
  TUNNEL_NAME_MAX_CHARACTERS,
  type TunnelRequest,
  type WantedEndpoint,
  type WantedGroup,
} from './admission.ts';
export { afterConnect, afterFailure, type BackoffRules, type BackoffState, CALM } from './backoff.ts';
export { billingMonth, monthEnd, monthOf, monthStart } from './billing/billing-month.ts';
export {
  type DailyLine,
  type DayOfUse,
  dailyLines,
  dueCents,
  estimateCents,
  freeBytes,
  isPayg,
  type MonthSoFar,
  usageCents,
} from './billing/rating.ts';
export {
  CAP_NOTICES,
  type CapFacts,
  type CapNotice,
  type CapState,
  capState,
  showDollars,
} from './billing/spend-cap.ts';
export {
  isGraceOver,
  NO_SUBSCRIPTION,
  nextSubscription,
  PAST_DUE_GRACE_MS,
  type SubscriptionAction,
  type SubscriptionEffect,
  type SubscriptionFacts,
  type SubscriptionState,
  type SubscriptionStep,
} from './billing/subscription.ts';
export { ConnectionCounts, type ConnectionLimits, type ConnectionVerdict } from './connection-counts.ts';
export { type FailureRules, type FailureVerdict, FailureWindow } from './failure-window.ts';
export { type GroupDecision, GroupDirectory } from './groups/group-directory.ts';
export {
  GROUP_NAME_MAX_CHARACTERS,
  isGroupProtocol,
  problemOfGroupName,
  refuseGroupFields,
} from './groups/group-request.ts';
export { GroupSeries, type GroupSeriesValues, type SeriesKind } from './groups/group-series.ts';
export {
  type GroupEffect,
  type GroupEvent,
  type GroupFacts,
  type GroupMember,
  type GroupProtocol,
  type GroupTally,
  TunnelGroup,
} from './groups/tunnel-group.ts';
export {
  HEALTH_HISTORY_MAX,
  type HealthEvent,
  MemberHealth,
  type ProbeKind,
  type UnhealthyReport,
} from './health/member-health.ts';
export { type HealthReport, type ProbedHealth, ProbeStreak } from './health/probe-streak.ts';
export * from './http1/index.ts';
export { API_KEY_RANDOM_BYTES, isApiKey, makeApiKey } from './keys/api-key.ts';
export { judgeLiveness, type LivenessFacts, type LivenessRules, type LivenessVerdict } from './liveness.ts';
export { generateName } from './names/generate-name.ts';
export { NameLeases, type NameUse, type WantedName } from './names/name-leases.ts';
export { foldSubdomain, problemOfSubdomain, RESERVED_SUBDOMAINS, SUBDOMAIN_MAX_CHARACTERS } from './names/subdomain.ts';
export { subdomainOf } from './names/subdomain-of-host.ts';
export { problemOfAddress } from './net/address-guard.ts';
export { type CallerAddress, callerAddressOf, hostPort, plainAddress, TrustedProxies } from './net/caller-address.ts';
export { mayAlertPrivate } from './net/may-alert-private.ts';
export { type Owner, ownerKey, sameOwner } from './owner.ts';
export { type LeaseAnswer, PortLeases, type PortUse, type WantedPort } from './port-leases.ts';
export { endpointKey, type LeasedEndpoint, type PublicEndpoint, sameEndpoint } from './public-endpoint.ts';
export {
  findTunnel,
  type SessionEffect,
  type SessionEvent,
  type SessionRules,
  type SessionState,
  type SessionStep,
  type SessionTunnel,
  startSession,
  transitionSession,
} from './session-life.ts';
export { lastUtcDays, utcDay } from './usage/utc-days.ts';
