// Instructions to install the client, shown next to commands that require the client.
import { useQuery } from '@tanstack/react-query';
import { CommandLine } from '../ui/empty-state.tsx';
import { CHECKOUT_INSTALL_COMMAND, installCommand } from './client-commands.ts';

/** Whether the server has client files, which a header of the install script shows. */
const hasClientFiles = async (): Promise<boolean> => {
  const { headers } = await fetch(`${window.location.origin}/install.sh`, { method: 'HEAD' });
  return headers.has('x-tunnel-client-version');
};

export const InstallClient = () => {
  const { data: isOffered, isPending } = useQuery({
    queryKey: ['client-files'],
    queryFn: hasClientFiles,
    retry: false,
    staleTime: 60_000,
  });
  const mayOffer = isPending || isOffered === true;
  const offered = isPending ? null : installCommand(window.location.origin, navigator.userAgent);
  return (
    <div className="text-left text-muted text-sm">
      <p className="mb-1.5">
        New computer? Install the <code className="font-mono">tunnel</code> command first.{' '}
        {mayOffer ? (
          <a href="/install" className="rounded-sm text-accent underline underline-offset-2">
            Other ways to install
          </a>
        ) : (
          'Run this in a checkout of Hatchway:'
        )}
      </p>
      <CommandLine command={mayOffer ? offered : CHECKOUT_INSTALL_COMMAND} label="Copy the install command" />
    </div>
  );
};
