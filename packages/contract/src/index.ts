export { type ApiError, apiError, apiErrorOf, REQUEST_ID_PATTERN } from './api-error.ts';
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
