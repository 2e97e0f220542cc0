/** The name of a model: any text, with those that the gateway knows to choose from. */
import { useQuery } from '@tanstack/react-query';
import type { ReactElement } from 'react';
import { get } from '../api/client.ts';
import { useProviders } from '../api/models.ts';
import { OfferedField, type TextFieldProps } from './field.tsx';
import type { Offer } from './pick-field.tsx';

export interface ListedModel {
  readonly id: string;
  readonly max_input_tokens: number | null;
  readonly max_tokens: number | null;
}

/** What can be called. */
export function useListedModels() {
  return useQuery({
    queryKey: ['models', 'listed'],
    queryFn: async ({ signal }) =>
      (await get<{ readonly models: readonly ListedModel[] }>('/api/models', { signal })).models,
    staleTime: 30_000,
  });
}

type ModelFieldProps = Pick<
  TextFieldProps,
  'label' | 'value' | 'onChange' | 'placeholder' | 'hint' | 'error'
>;

export function ModelField(props: ModelFieldProps): ReactElement {
  const models = useListedModels().data ?? [];
  return <OfferedField {...props} offers={models.map(({ id: value }) => ({ value }))} />;
}

/** What a key may be allowed: all models, those of a provider, each model. */
export function useModelOffers(): readonly Offer[] {
  const models = useListedModels().data ?? [];
  const providers = useProviders().data?.providers ?? [];
  return [
    { value: '*', about: 'all models' },
    ...providers
      .filter(({ there }) => there)
      .map(({ id }) => ({ value: `${id}/*`, about: `all models of ${id}` })),
    ...models.map(({ id }) => ({ value: id })),
  ];
}
