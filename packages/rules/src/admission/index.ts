export type { ControlRole } from './account-connections.ts';
export {
  Admission,
  type AdmissionRefusal,
  type ConnectionKind,
  type ConnectionState,
  type HeldConnection,
  shareOf,
  Ticket,
} from './admission.ts';
export {
  apiAlone,
  type ConnectionShare,
  connectionTotal,
  type ShareLimits,
  shareLimits,
  spareDescriptors,
} from './descriptors.ts';
