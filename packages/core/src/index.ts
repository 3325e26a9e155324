export { type DeletionFacts, type DeletionStep, deletionRetryMs, nextDeletionStep } from './account-deletion.ts';
export type { ControlRole } from './admission/account-connections.ts';
export {
  Admission,
  type AdmissionRefusal,
  type ConnectionKind,
  type ConnectionState,
  type HeldConnection,
  shareOf,
  type Ticket,
} from './admission/admission.ts';
export { type CallerKind, type CallTurn, CallTurns, type CallTurnsOptions } from './admission/call-turns.ts';
export {
  apiAlone,
  type ConnectionShare,
  connectionTotal,
  type ShareLimits,
  shareLimits,
  spareDescriptors,
} from './admission/descriptors.ts';
export { FairTurns, type Turn } from './admission/fair-turns.ts';
export { refusalToKeep, Shares } from './admission/shares.ts';
export { API_KEY_RANDOM_BYTES, isApiKey, looksLikeApiKey, makeApiKey } from './api-key.ts';
export { AwaitedEndpoints, type EndpointClaim, isAwaited, type LastRun } from './awaited-endpoints.ts';
export {
  type AccountFacts,
  type ClosedReason,
  type Entitlement,
  entitlement,
  type OpenTunnel,
  tunnelsOver,
} from './billing/entitlement.ts';
export {
  billingMonth,
  CAP_NOTICES,
  type CapNotice,
  type CapState,
  capState,
  estimateCents,
  isPayg,
  lastUtcDays,
  monthEnd,
  monthOf,
  showDollars,
  usageCents,
} from './billing/rating.ts';
export {
  followClock,
  nextSubscription,
  PAST_DUE_GRACE_MS,
  type SubscriptionEffect,
  type SubscriptionState,
  type SubscriptionStep,
} from './billing/subscription.ts';
export { ByteWindow } from './byte-window.ts';
export { CallLimits } from './call-limits.ts';
export * from './certificate-life.ts';
export { ConnectionCounts } from './connection-counts.ts';
export {
  CHECK_IDS,
  type Check,
  type CheckId,
  type CheckStatus,
  type Diagnosis,
  diagnose,
  type Finding,
  type Hop,
  inTheWay,
  outOfTime,
  skipped,
  skippedFor,
  statusOfHop,
  titleOf,
} from './doctor/check.ts';
export {
  type CarrierFacts,
  type DnsFacts,
  type EdgeFacts,
  judgeCarriers,
  judgeDns,
  judgeEdge,
  judgeKey,
  judgeProxy,
  judgeTcp,
  judgeTls,
  type KeyFacts,
  type Problem,
  type ProxyFacts,
  type TcpFacts,
  type TlsFacts,
} from './doctor/judge-path.ts';
export {
  type BandwidthFacts,
  judgeBandwidth,
  judgeLatency,
  judgeNat,
  judgeUdp,
  type LatencyFacts,
  type NatFacts,
  type Transfer,
  type UdpFacts,
} from './doctor/judge-quality.ts';
export {
  type ClockFacts,
  type ConfigFacts,
  judgeClock,
  judgeConfig,
  judgeKeyFile,
  judgePlatform,
  judgeTargets,
  type KeyFileFacts,
  type PlatformFacts,
  type TargetFacts,
} from './doctor/judge-settings.ts';
export * from './domains/index.ts';
export { FailureWindow } from './failure-window.ts';
export { Flow, type FlowEnd } from './flows/flow.ts';
export { FlowAccounts } from './flows/flow-accounts.ts';
export { FlowAddresses } from './flows/flow-addresses.ts';
export { type LoopFacts, prefixKeyOf } from './flows/flow-key.ts';
export { FlowOpenings } from './flows/flow-openings.ts';
export {
  DROP_REASONS,
  type DropReason,
  type FlowRules,
  FlowTable,
  type FlowTableOptions,
  type ReportedDrop,
} from './flows/flow-table.ts';
export { AccountBuckets, FramePace, type FramePaceRules, type FrameVerdict } from './frame-pace.ts';
export { GroupDirectory } from './groups/group-directory.ts';
export {
  type BroughtStamp,
  decideGroupPolicy,
  groupPolicyWarning,
  NO_POLICY_STAMP,
  type PolicyStamp,
  SHORT_HASH_CHARS,
} from './groups/group-policy.ts';
export { refuseGroupFields, refuseGroupsOf } from './groups/group-request.ts';
export { GroupSeries, type GroupSeriesValues } from './groups/group-series.ts';
export {
  type GroupEffect,
  type GroupEvent,
  type GroupMember,
  TunnelGroup,
} from './groups/tunnel-group.ts';
export {
  type HealthEvent,
  type HealthReport,
  MemberHealth,
  type ProbedHealth,
  type ProbeKind,
  ProbeStreak,
} from './health.ts';
export * from './http1/index.ts';
// policy: what whoever reads one must know of its bounds
export { CORE_LIMITS } from './limits.ts';
export { LinkedSet, type ListNode } from './linked-set.ts';
export { type LoginAttempt, LoginAttempts } from './login-attempts.ts';
export { type MailQuotaRules, takeMail } from './mail-quota.ts';
export {
  ALLOWED_BY_DEFAULT,
  type AllowedTarget,
  isTargetAllowed,
  parseAllowedTarget,
  plainHost,
} from './mcp-allow.ts';
export { NameLeases, type WantedName } from './name-leases.ts';
export {
  crowdedOut,
  FREE_NAME,
  type HeldName,
  holdMsOf,
  type NameEffect,
  type NameEvent,
  type NameOwnership,
  type NameRefusal,
  type NameRules,
  nameAt,
  nameEndsAt,
  owningLabel,
  refusalOfName,
  transitionName,
} from './name-ownership.ts';
export {
  foldSubdomain,
  generateName,
  isDomainItself,
  isEdgeItself,
  isOfDomain,
  platformLabelOf,
  problemOfPlainName,
  problemOfSubdomain,
  problemOfText,
  RESERVED_SUBDOMAINS,
  shownText,
  subdomainOf,
  WITHHELD_SUBDOMAINS,
  wildcardOver,
} from './names.ts';
export {
  decidePrivateAlerts,
  isLoopbackHost,
  problemOfAddress,
} from './net/address-guard.ts';
export {
  type CallerAddress,
  callerAddressOf,
  hostPort,
  networkOf,
  plainAddress,
  TrustedProxies,
} from './net/caller-address.ts';
export { isPrivateLink, type LinkFacts } from './net/link-privacy.ts';
export { controlSocketService, reachesOwnMachine } from './net/local-control.ts';
export { ownAuthority } from './net/own-authorities.ts';
export {
  bypassesProxy,
  chooseProxy,
  type ProxyChoice,
  type ProxySources,
  type ProxyTarget,
} from './net/proxy-choice.ts';
export { proxyHeader, proxyLine, readHostPort, type SocketAddress } from './net/proxy-header.ts';
export { StallWatch } from './net/stall-watch.ts';
export { NoticePace, type NoticePaceRules } from './notice-pace.ts';
export {
  type AuthorizationOffer,
  type AuthorizeError,
  type AuthorizeRequest,
  type AuthorizeVerdict,
  clientIdOf,
  judgeAuthorizeRequest,
  parseScopes,
  type QueryValues,
} from './oauth/authorize-request.ts';
export {
  allowsPrivateClients,
  type ClientVerdict,
  documentLifeMs,
  isDocumentUrl,
  judgeClientDocument,
  type OauthClient,
  type OperatorNames,
  plainName,
  problemOfClientHost,
  problemOfDocumentUrl,
} from './oauth/client-document.ts';
export {
  decideCode,
  decideGrantRefresh,
  type GrantFacts,
  isGrantAlive,
  type TokenRefusal,
  UNKNOWN_CODE,
  UNKNOWN_TOKEN,
} from './oauth/grant-life.ts';
export { hostOfUri, problemOfRedirectUri, withAnswer } from './oauth/redirect-uri.ts';
export { isOperatorsTenant, maySee, type Owner, ownerKey, sameOwner, tenantKey } from './owner.ts';
export {
  type P2pAudience,
  type P2pOffer,
  type P2pService,
  p2pNameOf,
  peerEndpointOf,
  refuseP2pSecret,
} from './p2p/p2p-offer.ts';
export { type JoinDecision, P2pRegistry, type P2pRules, type Peer, type PeerRequest } from './p2p/p2p-registry.ts';
export {
  isPathUsed,
  PATH_OFF,
  type PathEffect,
  type PathEvent,
  type PathReason,
  type PathState,
  type PathStep,
  pathReasonOf,
  transitionPath,
  wantsUse,
} from './path/path-machine.ts';
// policy: what a registration brings
export { judgePolicy } from './policy/brought-policy.ts';
// policy: what one may say, in a file and on the wire; its hash; its rules in words
export { canonicalJson } from './policy/canonical-json.ts';
// policy: rules at work
export { changedHead, withoutEdgeCookies } from './policy/changed-head.ts';
export { type CompiledPolicy, compilePolicy } from './policy/compile.ts';
export { begin, decideConnection, resume } from './policy/evaluate.ts';
export type {
  FileAuth,
  FileLogin,
  FileMatch,
  FilePolicy,
  FilePolicyTable,
  FileRule,
  FileToken,
  FileWebhook,
  ReadPolicy,
} from './policy/file-policy.ts';
// policy: globs, path readings, networks, the match of a rule, the limiter
export { compileGlob, type GlobKind, problemOfGlob } from './policy/glob.ts';
export { limiterKeyOf } from './policy/limiter-key.ts';
export { clearedCookies, loginCookie, pendingCookie } from './policy/login-cookies.ts';
export {
  CALLBACK_PATH,
  checkCallback,
  namedClaims,
  type PendingLogin,
  pendingLogin,
  queryValues,
  sessionFrom,
  stateOf,
} from './policy/login-machine.ts';
export { NetworkSet, problemOfNetwork } from './policy/network-set.ts';
export { PathReadings, RequestReadings, readingsOf } from './policy/path-readings.ts';
export type * from './policy/policy.ts';
export { actionOf } from './policy/policy.ts';
export { renderPolicyAnswer } from './policy/policy-answers.ts';
export { type PolicyAbout, problemsOfPolicy, warningsOfPolicy } from './policy/policy-checks.ts';
export { policyHash } from './policy/policy-hash.ts';
export { type PolicyProblem, problemsOfIssues, problemText } from './policy/policy-problems.ts';
export type { OnRule, PolicyLists } from './policy/policy-run.ts';
export { filePolicySchema, wirePolicySchema } from './policy/policy-schema.ts';
export type * from './policy/policy-step.ts';
export { policyWeight } from './policy/policy-weight.ts';
export { LimiterBudget, type LimiterRates, RequestLimiter } from './policy/request-limiter.ts';
export { notedHead, notedOwn } from './policy/response-notes.ts';
export { type CompiledMatch, compileMatch, restricts } from './policy/rule-match.ts';
export { guardWords, summaryOf } from './policy/rule-summary.ts';
export { PortLeases, type PortRequest, portsPerAccount, type ReservedPort, type WantedPort } from './port-leases.ts';
export {
  endpointKey,
  endpointLabel,
  endpointOfHost,
  endpointOfProtocol,
  endpointsOfLabel,
  type HostEndpoint,
  hostOfEndpoint,
  type LeasedEndpoint,
  type PeerEndpoint,
  type PublicEndpoint,
  sameEndpoint,
} from './public-endpoint.ts';
export { NOT_RANKED, type Ranked, Ranking } from './ranking.ts';
export { RateWindow } from './rate-window.ts';
export { type Readiness, type ReadinessFacts, readiness, type TunnelSource } from './readiness.ts';
export {
  decideRegistration,
  endpointOfLease,
  type RegistrationDecision,
  type WantedEndpoint,
  type WantedGroup,
  type WantedLease,
} from './registration.ts';
export {
  type EntryFields,
  hasOtherTarget,
  isRetarget,
  isUpdate,
  outcomeOf,
  planReload,
  type ReloadOutcome,
  type ReloadPlan,
  type RunningEntry,
  restartRequired,
  type WantedEntry,
} from './reload/plan-reload.ts';
export {
  afterConnect,
  afterFailure,
  type BackoffRules,
  type BackoffState,
  CALM,
  decideMailRetry,
  judgeLiveness,
} from './retry.ts';
export {
  findTunnel,
  type SessionEffect,
  type SessionEvent,
  type SessionState,
  type SessionTunnel,
  startSession,
  transitionSession,
} from './session-life.ts';
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
} from './sign-in.ts';
export {
  isGroupProtocol,
  isTunnelProtocol,
  PORT_RANGE_KEYS,
  type Transport,
  type TunnelProtocol,
} from './tunnel-protocols.ts';
export * from './wanted-certificates.ts';
