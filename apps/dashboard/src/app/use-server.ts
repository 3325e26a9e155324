// The edge that the commands of a page name.
import { useQuery } from '@tanstack/react-query';
import { useApi } from './app-context.tsx';
import type { ServerPlace } from './client-commands.ts';
import { regionsQuery } from './regions-query.ts';

/** null: not known yet, and a command without it would go elsewhere. undefined: nobody says; the client has a default. */
export const useServer = (): ServerPlace | null | undefined => {
  const { data, isPending } = useQuery(regionsQuery(useApi()));
  return isPending ? null : data?.find(({ control }) => control !== '');
};
