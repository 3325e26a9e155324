// Determines the tools, resources and prompts available to one caller: the host's tools, without tools that are excluded by the read-only
// mode or by the token's scopes. Excluded items are reported as unknown rather than forbidden.
import { PROMPTS, type Prompt } from './prompts.ts';
import { RESOURCE_KINDS, type ResourceKind } from './resources.ts';
import type { Tool } from './tool.ts';
import { type Scope, TOOLS } from './tool-facts.ts';
import type { ToolHost, ToolName } from './tool-host.ts';
import { TOOL_BY_NAME } from './tools/all-tools.ts';

export interface OfferLimits {
  /** Whether only tools without side effects are available. */
  readonly readOnly?: boolean;
  /** Scopes of the token. Tools outside the scopes are unavailable. Default: all tools. */
  readonly scopes?: ReadonlySet<Scope>;
}

export class Offer {
  readonly #host: ToolHost;
  readonly #limits: OfferLimits;

  constructor(host: ToolHost, limits: OfferLimits) {
    this.#host = host;
    this.#limits = limits;
  }

  /** Whether a tool is available. Not cached, because a host may have more tools after the user has signed in. */
  has(name: ToolName): boolean {
    const facts = TOOLS.get(name);
    if (facts === undefined || !this.#host.tools.has(name)) return false;
    const { readOnly = false, scopes } = this.#limits;
    if (readOnly && !facts.readOnly) return false;
    return scopes === undefined || (facts.scope !== null && scopes.has(facts.scope));
  }

  tool(name: string): Tool | null {
    const tool = TOOL_BY_NAME.get(name);
    return tool !== undefined && this.has(tool.name) ? tool : null;
  }

  /** Returns the available tools, sorted by name. */
  tools(): Tool[] {
    return [...TOOL_BY_NAME.values()].filter(({ name }) => this.has(name));
  }

  hasResource({ tool }: ResourceKind): boolean {
    return tool === null || this.has(tool);
  }

  resources(): ResourceKind[] {
    return RESOURCE_KINDS.filter((kind) => this.hasResource(kind));
  }

  /** Returns the available prompts, sorted by name. */
  prompts(): Prompt[] {
    return PROMPTS.filter(({ tools }) => tools.every((name) => this.has(name)));
  }
}
