// The route /mcp. Rejected requests get a WWW-Authenticate header, from which a program can find the sign-in or request more scopes
// without help.
import { apiErrorHeaders, apiErrorOf } from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import { headerOf, socketOf } from '@tunnel/http-shell';
import type { Context } from 'hono';
import type { ContentfulStatusCode } from 'hono/utils/http-status';
import { authenticateCaller, type McpDoorDeps, showsBearer } from '../../../mcp/mcp-caller.ts';
import type { McpEndpoint } from '../../../mcp/mcp-endpoint.ts';
import { oauthAddresses } from '../../../services/oauth/oauth-addresses.ts';
import type { ApiAdmission } from '../../admission/api-admission.ts';
import { createOwnOriginCheck } from '../../auth/refresh-cookie.ts';
import { MCP_PATH } from '../../shared/paths.ts';
import type { PlatformApp, PlatformEnv, RouteContext } from '../../shared/platform-env.ts';

export interface McpRouteDeps extends McpDoorDeps, Pick<RouteContext, 'settings'> {
  /** Returns the endpoint, loaded for the first message of an authenticated caller. */
  readonly endpoint: () => Promise<Pick<McpEndpoint, 'answer'>>;
  /** Admission of API calls: the lookup of an unknown key waits for a turn. Absent if every lookup begins at once. */
  readonly admission?: Pick<ApiAdmission, 'inTurn' | 'networkOf'> | undefined;
  /** Returns the port that the platform listens on. */
  readonly port: () => number;
}

/** Adds the route /mcp. Not part of the REST API document, because the MCP protocol defines the messages. */
export const addMcpRoutes = (app: PlatformApp, deps: McpRouteDeps): void => {
  const isOurs = createOwnOriginCheck(deps.settings, deps.port);
  const { resourceMetadata } = oauthAddresses(deps.settings.public_url);
  app.post(MCP_PATH, async (context) => {
    const authorization = headerOf(context, 'authorization');
    try {
      // Rejects foreign pages open in the browser of a user who runs the platform on the same computer.
      if (!isOurs(headerOf(context, 'origin'))) throw new Fault('ORIGIN_REFUSED');
      const caller = await authenticateCaller(
        { ...deps, lookUp: (account, work) => lookUp(deps, context, account, work) },
        authorization,
      );
      if (!/json/i.test(headerOf(context, 'content-type') ?? '')) throw new Fault('API_MEDIA_TYPE');
      const { readMessage } = await import('../../../mcp/mcp-message.ts');
      const message = readMessage(await context.req.arrayBuffer());
      if (message instanceof Response) return message;
      const endpoint = await deps.endpoint();
      return await endpoint.answer(caller, {
        request: context.req.raw,
        message,
        onOver: whenOver(context),
        header: (name) => headerOf(context, name),
        cut: () => socketOf(context).incoming?.socket.destroy(),
      });
    } catch (error) {
      const challenge = challengeOf(error, { resourceMetadata, isShown: showsBearer(authorization) });
      if (!(error instanceof Fault) || challenge === null) throw error;
      return refuse(context, error, challenge);
    }
  });
};

/**
 * Runs the lookup of a key in a turn of its account, or of the caller's network if the account is unknown. MCP messages need no turn,
 * because they have separate limits.
 */
const lookUp = <T>(
  { admission }: McpRouteDeps,
  context: Context<PlatformEnv>,
  account: string | null,
  work: () => Promise<T>,
): Promise<T> => {
  if (admission === undefined) return work();
  const caller =
    account === null ? admission.networkOf(context.get('address')) : ({ kind: 'account', id: account } as const);
  return admission.inTurn(socketOf(context).outgoing, caller, work);
};

interface Shown {
  readonly resourceMetadata: string;
  /** True if the request to /mcp carried a token. */
  readonly isShown: boolean;
}

/** Returns the WWW-Authenticate header, which tells where to get a token or a token with more scopes. Null if no token would help. */
const challengeOf = (error: unknown, { resourceMetadata, isShown }: Shown): string | null => {
  if (!(error instanceof Fault)) return null;
  const metadata = `resource_metadata="${resourceMetadata}"`;
  if (error.status === 401) {
    return `Bearer ${metadata}, scope="tunnels:read"${isShown ? ', error="invalid_token"' : ''}`;
  }
  if (error.code !== 'MCP_SCOPE_MISSING') return null;
  return `Bearer error="insufficient_scope", scope="${error.values['scope']}", ${metadata}`;
};

const refuse = (context: Context<PlatformEnv>, fault: Fault, challenge: string): Response =>
  context.json(apiErrorOf(fault, context.get('requestId')), fault.status as ContentfulStatusCode, {
    ...apiErrorHeaders(fault),
    'www-authenticate': challenge,
  });

/**
 * Returns a function that registers a callback for the end of the response. A lost connection also closes the response, possibly before
 * the callback is registered.
 */
const whenOver =
  (context: Context<PlatformEnv>) =>
  (run: () => void): void => {
    const { outgoing } = socketOf(context);
    if (outgoing?.destroyed === true) run();
    else outgoing?.once('close', run);
  };
