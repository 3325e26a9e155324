// Types of a request's context and of the dependencies common to all routes.
import type { HttpBindings } from '@hono/node-server';
import type { OpenAPIHono } from '@hono/zod-openapi';
import type { MiddlewareHandler } from 'hono';
import type { EdgeActor, LoggedInActor, ServiceContext } from '../../services/shared/service-context.ts';

export interface PlatformEnv {
  Bindings: HttpBindings;
  Variables: { requestId: string; actor: LoggedInActor; edge: EdgeActor; address: string };
}

export type PlatformApp = OpenAPIHono<PlatformEnv>;

export interface RouteContext extends ServiceContext {
  readonly version: string;
}

/** Middleware that admits only signed-in callers. */
export interface UserRoutes {
  readonly requireUser: MiddlewareHandler<PlatformEnv>;
}

export type UserRouteContext = RouteContext & UserRoutes;
