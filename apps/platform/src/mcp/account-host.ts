// The MCP tools of the platform for one account. The tools use the services of the REST API, so the tunnels of other accounts are
// invisible.
import { CAPTURES_KEPT_MAX, CHART_DAYS, collectCaptures } from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import {
  type HostStatus,
  type HostUsage,
  type ShownTunnel,
  TOOLS,
  type ToolCall,
  type ToolHost,
  type ToolName,
} from '@tunnel/mcp/tools';
import type { AuthContext } from '../services/auth/auth-context.ts';
import { showMe } from '../services/auth/users.ts';
import { listKeys } from '../services/keys/keys.ts';
import { writeAudit } from '../services/shared/audit.ts';
import type { ServiceContext, UserActor } from '../services/shared/service-context.ts';
import { awaitRequest } from '../services/usage/await-request.ts';
import {
  closeTunnel,
  findRequest,
  type GroupEdges,
  listGroups,
  listRegions,
  listRequests,
  replayRequest,
  type TunnelEdges,
} from '../services/usage/edge-state.ts';
import { findLivingTunnel, type LivingTunnelEdges, listLivingTunnels } from '../services/usage/living-tunnels.ts';
import { findTunnel, listTunnels } from '../services/usage/tunnel-log.ts';
import { chartUsage, summarizeUsage } from '../services/usage/usage-sums.ts';
import type { McpCaller } from './mcp-caller.ts';

export interface AccountHostOptions extends ServiceContext {
  readonly users: AuthContext['users'];
  readonly edges: GroupEdges & TunnelEdges & LivingTunnelEdges;
  readonly version: string;
}

/**
 * Tools offered by the platform: all tools with a scope. Tools without a scope open tunnels, which only a client on the service's
 * computer can do.
 */
const ACCOUNT_TOOLS: ReadonlySet<ToolName> = new Set(
  [...TOOLS.values()].filter(({ scope }) => scope !== null).map(({ name }) => name),
);

export class AccountHost implements ToolHost {
  readonly tools = ACCOUNT_TOOLS;
  readonly #options: AccountHostOptions;
  readonly #caller: McpCaller;

  constructor(options: AccountHostOptions, caller: McpCaller) {
    this.#options = options;
    this.#caller = caller;
  }

  get #actor(): UserActor {
    return this.#caller.actor;
  }

  async listTunnels({ state, limit }: { readonly state: 'active' | 'ended'; readonly limit: number }) {
    // Asks for one more tunnel than shown, to detect whether the list is truncated.
    const asked = limit + 1;
    const tunnels: ShownTunnel[] =
      state === 'active'
        ? await listLivingTunnels(this.#options, this.#actor, asked)
        : await listTunnels(this.#options, this.#actor, { limit: asked, offset: 0, state: 'closed' });
    return { tunnels: tunnels.slice(0, limit), truncated: tunnels.length > limit };
  }

  getTunnel(tunnel: string): Promise<ShownTunnel> {
    return findLivingTunnel(this.#options, this.#actor, tunnel);
  }

  async closeTunnel(tunnel: string) {
    await this.#audit('close_tunnel', tunnel, {});
    return closeTunnel(this.#options, this.#actor, tunnel);
  }

  listRequests(tunnel: string) {
    return collectCaptures((query) => listRequests(this.#options, this.#actor, tunnel, query), CAPTURES_KEPT_MAX);
  }

  getRequest(tunnel: string, requestId: string) {
    return findRequest(this.#options, this.#actor, tunnel, requestId);
  }

  async replayRequest(tunnel: string, requestId: string) {
    await this.#audit('replay_request', tunnel, { request_id: requestId });
    return replayRequest(this.#options, this.#actor, tunnel, requestId);
  }

  async waitForRequest(
    tunnel: string,
    { method, path_contains: pathContains }: Parameters<ToolHost['waitForRequest']>[1],
    withinMs: number,
    { signal }: ToolCall,
  ) {
    const bounds = { withinMs, signal };
    const found = await awaitRequest(this.#options, this.#actor, tunnel, { method, pathContains }, bounds);
    // Minutes may have passed. The request must not be returned after the caller's grant or key has ended.
    if (found !== null && !(await this.#caller.isStillIn())) throw new Fault('ACCESS_TOKEN_INVALID');
    return found;
  }

  listPools() {
    return listGroups(this.#options, this.#actor);
  }

  async getStatus(): Promise<HostStatus> {
    const { settings, version } = this.#options;
    const [me, usage, regions] = await Promise.all([
      showMe(this.#options, this.#actor),
      summarizeUsage(this.#options, this.#actor),
      listRegions(this.#options),
    ]);
    return {
      account: { email: me.email, status: me.status },
      plan: usage.plan,
      limits: { tunnels: usage.tunnel_limit, calls_per_minute: settings.mcp.calls_per_minute },
      active_tunnels: usage.active_tunnels,
      regions,
      platform: { url: settings.public_url, version },
      access: { ...this.#caller.access, scopes: [...this.#caller.scopes] },
    };
  }

  async getUsage(days: number = CHART_DAYS.default): Promise<HostUsage> {
    const [summary, points] = await Promise.all([
      summarizeUsage(this.#options, this.#actor),
      chartUsage(this.#options, this.#actor, days),
    ]);
    return { summary, days: points };
  }

  listKeys() {
    return listKeys(this.#options, this.#actor);
  }

  /**
   * Writes a tool call to the audit log before an edge carries out the call. If the entry cannot be written, the call is not carried out.
   * The tunnel must belong to this account, so that a caller cannot fill the audit log with invented names.
   */
  async #audit(tool: ToolName, tunnel: string, details: Readonly<Record<string, string>>): Promise<void> {
    const { db } = this.#options;
    const { tunnel_id } = await findTunnel({ db }, this.#actor, tunnel);
    const { userId } = this.#actor;
    const { kind, ...access } = this.#caller.access;
    await writeAudit(db, {
      actor: `user:${userId}`,
      action: 'mcp.tool_called',
      userId,
      details: { tool, tunnel_id, ...details, by: kind, ...access },
    });
  }
}
