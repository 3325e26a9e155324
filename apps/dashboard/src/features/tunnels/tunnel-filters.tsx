// Which tunnels are shown: by state and by protocol, kept in the address of the page.
import { useNavigate } from '@tanstack/react-router';
import { Choice } from '../../ui/choice.tsx';
import { choose, PROTOCOL_CHOICES, STATE_CHOICES, type TunnelFilter } from './filter.ts';

export const TunnelFilters = ({ filter }: { readonly filter: TunnelFilter }) => {
  const navigate = useNavigate();
  const go = (chosen: Parameters<typeof choose>[1]): void =>
    void navigate({ to: '/tunnels', search: choose(filter, chosen), replace: true, resetScroll: true });
  return (
    <div className="mb-4 flex flex-wrap gap-x-6 gap-y-3">
      <Choice label="State" value={filter.state ?? 'all'} options={STATE_CHOICES} onChange={(state) => go({ state })} />
      <Choice
        label="Protocol"
        value={filter.protocol ?? 'all'}
        options={PROTOCOL_CHOICES}
        onChange={(protocol) => go({ protocol })}
      />
    </div>
  );
};
