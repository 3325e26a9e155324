// Stands in until the services are there.
import type { CapturedRequest } from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import type { UserActor } from '../services/service-context.ts';
import { listRequests, type TunnelEdgeContext } from '../services/usage/edge-state.ts';

export const findRequest = async (context: TunnelEdgeContext, actor: UserActor, id: string, requestId: string) => {
  const { requests } = await listRequests(context, actor, id, 100);
  const found = requests.find((request) => request.id === requestId);
  if (found === undefined) throw new Fault('CAPTURE_UNKNOWN');
  return found;
};
export const closeTunnel = async (_: TunnelEdgeContext, __: UserActor, id: string) => ({ tunnel_id: id });
export const awaitRequest = (
  _context: TunnelEdgeContext,
  _actor: UserActor,
  _id: string,
  { signal, withinMs }: { withinMs: number; signal: AbortSignal },
): Promise<CapturedRequest | null> =>
  new Promise((resolve, reject) => {
    const timer = setTimeout(() => resolve(null), withinMs);
    signal.addEventListener('abort', () => {
      clearTimeout(timer);
      reject(new Error('aborted'));
    });
  });
