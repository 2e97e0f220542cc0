/** A text field that reports its value when the typing pauses: each change costs a request. */
import { useEffect, useId, useState, type ReactElement } from 'react';
import { TextField, type TextFieldProps } from './field.tsx';

interface DelayedFieldProps extends Omit<TextFieldProps, 'list'> {
  /** What the browser offers while typing. */
  readonly offers?: readonly { readonly value: string; readonly label?: string }[];
}

const pauseMs = 350;
/** Longer lists make browsers slow. */
const maxOffers = 500;

export function DelayedField({
  value,
  onChange,
  offers,
  ...rest
}: DelayedFieldProps): ReactElement {
  const id = useId();
  const [typed, setTyped] = useState(value);
  const [reported, setReported] = useState(value);
  if (reported !== value) {
    setReported(value);
    setTyped(value);
  }
  useEffect(() => {
    if (typed === reported) return undefined;
    const timer = setTimeout(() => {
      setReported(typed);
      onChange(typed);
    }, pauseMs);
    return () => clearTimeout(timer);
  }, [typed, reported, onChange]);
  return (
    <>
      <TextField {...rest} value={typed} onChange={setTyped} list={offers && `${id}-offers`} />
      {offers === undefined ? null : (
        <datalist id={`${id}-offers`}>
          {offers.slice(0, maxOffers).map((offer) => (
            <option key={offer.value} value={offer.value}>
              {offer.label}
            </option>
          ))}
        </datalist>
      )}
    </>
  );
}
