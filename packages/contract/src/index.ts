export { type ApiError, apiError, apiErrorHeaders, apiErrorOf, REQUEST_ID_PATTERN } from './api-error.ts';
export {
  CAPTURE_LIST_LIMIT,
  type CapturedRequest,
  type CaptureList,
  capturedRequest,
  captureList,
} from './edge-captures.ts';
export * from './edge-link.ts';
export {
  type EdgeRegion,
  type EdgeStatus,
  type EdgeTunnel,
  edgeRegion,
  edgeRegions,
  edgeStatus,
  edgeTunnel,
  edgeTunnels,
  type ShownProtocol,
  shownProtocol,
  showProtocol,
} from './edge-rest.ts';
export {
  type GroupEvent,
  type GroupMemberSummary,
  type GroupProtocol,
  type GroupSummary,
  groupEvent,
  groupMemberSummary,
  groupProtocol,
  groupSummaries,
  groupSummary,
  type HealthEvent,
  healthEvent,
  healthEvents,
  type Lagged,
  lagged,
} from './groups.ts';
export {
  type AccessToken,
  accessToken,
  type Credentials,
  credentials,
  type EmailOnly,
  emailOnly,
  type LoggedIn,
  loggedIn,
  type MessageBody,
  messageBody,
  type PasswordReset,
  type PublicKeys,
  passwordReset,
  publicKeys,
  type Registration,
  registration,
  type UserChange,
  type UserPublic,
  type UserSession,
  userChange,
  userPublic,
  userSession,
  userSessions,
} from './platform-auth.ts';
export * from './platform-billing.ts';
export type { PlatformAnswer, PlatformClientOptions, PlatformFetch, PlatformRequest } from './platform-call.ts';
export { type BillingOrder, PlatformClient, type WithRefreshToken } from './platform-client.ts';
export { type OkBody, okBody } from './platform-health.ts';
export {
  type ApiToken,
  apiToken,
  apiTokens,
  type CreatedKey,
  createdKey,
  KEY_LABEL_MAX_CHARACTERS,
  type NewKey,
  newKey,
} from './platform-keys.ts';
export { type PlatformPools, platformPools } from './platform-pools.ts';
export {
  CHART_DAYS,
  SUMMARY_DAYS,
  TUNNEL_LOG_LIMIT,
  TUNNEL_LOG_OFFSET,
  type TunnelLogEntry,
  type TunnelLogQuery,
  type TunnelState,
  tunnelLog,
  tunnelLogEntry,
  tunnelState,
  type UsageChartPoint,
  type UsageRegion,
  type UsageSummary,
  usageChart,
  usageChartPoint,
  usageRegion,
  usageRegions,
  usageSummary,
} from './platform-usage.ts';
