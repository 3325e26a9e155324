// Makes the call for one request to the service behind a tunnel, in the version of HTTP which that service speaks.
import type { Tunnel } from '../../pool/tunnel.ts';
import type { Asker } from './asker.ts';
import { Exchange } from './exchange.ts';
import { H2cExchange } from './h2c-exchange.ts';
import type { CallContext, ServiceCall, ServiceRequest } from './service-call.ts';

export const callService = (
  context: CallContext,
  tunnel: Tunnel,
  request: ServiceRequest,
  asker: Asker,
): ServiceCall =>
  tunnel.http?.localProtocol === 'h2c'
    ? new H2cExchange(context, tunnel, request, asker)
    : new Exchange(context, tunnel, request, asker);
