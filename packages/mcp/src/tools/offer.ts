// What exists for one caller: what the host has, less what may change something, less what the token has no scope for. The rest is unknown here, not forbidden.
import { PROMPTS, type Prompt } from './prompts.ts';
import { RESOURCE_KINDS, type ResourceKind } from './resources.ts';
import type { Tool } from './tool.ts';
import { type Scope, TOOLS } from './tool-facts.ts';
import type { ToolHost, ToolName } from './tool-host.ts';
import { TOOL_BY_NAME } from './tools/all-tools.ts';

export interface OfferLimits {
  /** Only tools that change nothing exist. */
  readonly readOnly?: boolean;
  /** Left out: all of them. Tools outside do not exist. */
  readonly scopes?: ReadonlySet<Scope>;
}

export class Offer {
  readonly #host: ToolHost;
  readonly #limits: OfferLimits;

  constructor(host: ToolHost, limits: OfferLimits) {
    this.#host = host;
    this.#limits = limits;
  }

  /** Asked anew each time: a host may have more tools after somebody has logged in. */
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

  /** Sorted by name. */
  tools(): Tool[] {
    return [...TOOL_BY_NAME.values()].filter(({ name }) => this.has(name));
  }

  hasResource({ tool }: ResourceKind): boolean {
    return tool === null || this.has(tool);
  }

  resources(): ResourceKind[] {
    return RESOURCE_KINDS.filter((kind) => this.hasResource(kind));
  }

  /** Sorted by name. */
  prompts(): Prompt[] {
    return PROMPTS.filter(({ tools }) => tools.every((name) => this.has(name)));
  }
}
