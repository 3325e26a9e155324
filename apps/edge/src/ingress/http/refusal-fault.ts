// What a visitor is told when a stream to the local service was not opened.
import { Fault } from '@tunnel/errors';
import type { StreamReason } from '@tunnel/protocol';

export const faultOfRefusal = ({ code, text }: StreamReason): Fault =>
  code === 'dial-refused' || code === 'dial-timeout'
    ? new Fault('LOCAL_UNREACHABLE', { reason: text })
    : new Fault('TUNNEL_AWAY');
