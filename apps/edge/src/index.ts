export { checkTls } from './admin/rest-security.ts';
export { sendTestAlert, type TestAlertEnd } from './alerts/test-alert.ts';
export { createEdge } from './edge.ts';
export type { Edge, EdgeDeps } from './edge-interface.ts';
export { checkPolicyConfig } from './policy/policy-services.ts';
