;; Walks over the bytes of a long request body in one pass, sixteen bytes of a string at a time.
;;
;; The walk validates the JSON, finds the top-level members, sets feature flags, and writes the
;; skeleton: the same JSON without long texts, schemas of tools and inputs of tool calls.
;; It accepts less than JSON allows. It gives up ("unsupported") on a duplicate key, an escaped
;; key, a number with an exponent or more than 15 characters, too deep nesting, too many keys and
;; everything that is not JSON; such bodies are read by scan.ts and JSON.parse instead.
;;
;; `node scripts/assemble-walk.mjs` assembles this file into walk-program.ts.
;;
;; Conventions: an address is an offset into the memory. A function that passes over something
;; takes the address where it begins and returns the address behind it, or 0 for unsupported.
;; The caller puts 32 zero bytes behind the text: every loop ends there without a bounds check.
(module
  (memory (export "memory") 35)

  ;; ---- Memory map; skeleton.ts uses the same offsets. ----
  ;; 0  tokens (i32): opening brackets, commas and colons
  ;; 4  number of top-level members (i32)
  ;; 8  offset in the text behind the first brace (i32)
  ;; 12 feature flags (i32)
  (data (i32.const 256) "messages" "tools" "content" "text" "arguments" "description" "thinking")
  (data (i32.const 320) "parameters" "input_schema" "input")
  (data (i32.const 352) "true" "false" "null")
  (data (i32.const 368) "\"gw1." "\\u00")
  (data (i32.const 384) "\"input_audio\"" "\"image_url\"" "\"video_url\"" "\"audio_url\"" "\"document\"")
  (data (i32.const 448) "\"image\"" "\"video\"" "\"audio\"" "\"file\"" "\"file_data\"" "\"data\"")
  (data (i32.const 512) "\"cache_control\"" "\"1h\"" "\"links\"")
  (data (i32.const 544) "url\"" "Url\"" "URL\"" "uri\"" "urls\"" "uris\"")
  ;; Top-level members, 16 bytes each: start and length of the key, start and end of the value.
  (global $MEMBERS i32 (i32.const 1024))
  ;; Open containers, 8 bytes each: $firstKey and $isObject of the container around.
  (global $FRAMES i32 (i32.const 2048))
  ;; Keys of all open objects, 8 bytes each: address and length.
  (global $KEYS i32 (i32.const 4096))
  ;; The text and 32 zero bytes.
  (global $TEXT i32 (i32.const 131072))
  ;; The skeleton follows them; it is never longer than the text.
  (global $skeleton (mut i32) (i32.const 0))

  ;; ---- Limits ----
  (global $MAX_DEPTH i32 (i32.const 128))
  (global $MAX_KEY_LENGTH i32 (i32.const 1024))
  ;; Keys of one object, and top-level members.
  (global $MAX_KEYS i32 (i32.const 64))
  ;; Bytes of keys compared with each other in the whole text: hostile keys may share long prefixes.
  (global $MAX_COMPARED i32 (i32.const 262144))
  (global $MAX_NUMBER_LENGTH i32 (i32.const 15))
  ;; A shorter text stays in the skeleton.
  (global $MIN_CUT_LENGTH i32 (i32.const 64))

  ;; ---- Feature flags; skeleton.ts uses the same bits. ----
  (global $ESCAPE i32 (i32.const 1))
  (global $MEDIA i32 (i32.const 2))
  (global $CACHE_CONTROL i32 (i32.const 4))
  (global $HOUR i32 (i32.const 8))
  (global $SEALED i32 (i32.const 16))
  (global $UNUSUAL_NAME i32 (i32.const 32))
  (global $ADDRESS i32 (i32.const 64))

  ;; ---- State ----
  (global $tokens (mut i32) (i32.const 0))
  (global $members (mut i32) (i32.const 0))
  (global $features (mut i32) (i32.const 0))
  ;; Number of open containers.
  (global $depth (mut i32) (i32.const 0))
  ;; The innermost open container is an object.
  (global $isObject (mut i32) (i32.const 0))
  ;; The latest key.
  (global $keyStart (mut i32) (i32.const 0))
  (global $keyLength (mut i32) (i32.const 0))
  ;; Where the keys of the innermost container begin in $KEYS, and the end of all keys.
  (global $firstKey (mut i32) (i32.const 0))
  (global $keysEnd (mut i32) (i32.const 0))
  (global $compared (mut i32) (i32.const 0))
  ;; The walk is in `messages` or `tools` of the top level: only there something is cut out.
  (global $inList (mut i32) (i32.const 0))
  ;; Depth inside the container that is being cut out, and its address; 0 outside of one.
  (global $cutDepth (mut i32) (i32.const 0))
  (global $cutStart (mut i32) (i32.const 0))
  ;; The text before this address is in the skeleton, or was cut out.
  (global $copied (mut i32) (i32.const 0))
  ;; End of the skeleton.
  (global $out (mut i32) (i32.const 0))

  ;; ---- Comparing ----

  ;; Whether $length bytes at both addresses are equal.
  (func $equal (param $a i32) (param $b i32) (param $length i32) (result i32)
    (loop $bytes
      (if (i32.eqz (local.get $length)) (then (return (i32.const 1))))
      (local.set $length (i32.sub (local.get $length) (i32.const 1)))
      (br_if $bytes
        (i32.eq
          (i32.load8_u (i32.add (local.get $a) (local.get $length)))
          (i32.load8_u (i32.add (local.get $b) (local.get $length))))))
    (i32.const 0))

  ;; Whether the latest key is the name at this address.
  (func $keyIs (param $name i32) (param $length i32) (result i32)
    (if (result i32) (i32.eq (global.get $keyLength) (local.get $length))
      (then (call $equal (global.get $keyStart) (local.get $name) (local.get $length)))
      (else (i32.const 0))))

  ;; Whether the text up to and including the byte at $quote ends with these bytes, four at least.
  (func $endsWith (param $quote i32) (param $bytes i32) (param $length i32) (result i32)
    (if
      (i32.ne
        (i32.load (i32.sub (local.get $quote) (i32.const 3)))
        (i32.load (i32.sub (i32.add (local.get $bytes) (local.get $length)) (i32.const 4))))
      (then (return (i32.const 0))))
    (call $equal
      (i32.sub (i32.add (local.get $quote) (i32.const 1)) (local.get $length))
      (local.get $bytes)
      (local.get $length)))

  ;; ---- Feature flags ----

  (func $flag (param $feature i32)
    (global.set $features (i32.or (global.get $features) (local.get $feature))))

  ;; At an opening quote, escaped or not: `"gw1.` begins a text that the gateway sealed.
  (func $flagSealed (param $quote i32)
    (if (i32.eq (i32.load (local.get $quote)) (i32.load (i32.const 368)))
      (then
        (if (i32.eq (i32.load8_u offset=4 (local.get $quote)) (i32.const 0x2e))
          (then (call $flag (global.get $SEALED)))))))

  ;; At a backslash: `\u00` begins the escape of a letter or digit.
  (func $flagEscape (param $backslash i32)
    (if (i32.eq (i32.load (local.get $backslash)) (i32.load (i32.const 373)))
      (then (call $flag (global.get $ESCAPE)))))

  ;; At the closing quote of any key or text: the flags of words in quotes, found by the last
  ;; letter. An opening quote belongs to a word where the list has one.
  (func $flagWord (param $quote i32)
    (local $at i32)
    (local.set $at (local.get $quote))
    (block $s (block $l (block $o (block $e (block $t (block $a (block $i (block $h (block $none
      ;; The low five bits of the last letter: a = 1, e = 5, h = 8, i = 9, l = 12, o = 15, s = 19, t = 20.
      (br_table
        $none $a $none $none $none $e $none $none $h $i
        $none $none $l $none $none $o $none $none $none $s
        $t $none
        (i32.and (i32.load8_u (i32.sub (local.get $at) (i32.const 1))) (i32.const 31)))) ;; $none
      (return)) ;; $h
      (if (call $endsWith (local.get $at) (i32.const 527) (i32.const 4)) ;; "1h"
        (then (call $flag (global.get $HOUR))))
      (return)) ;; $i
      (if (call $endsWith (local.get $at) (i32.const 556) (i32.const 4)) ;; uri"
        (then (call $flag (global.get $ADDRESS))))
      (return)) ;; $a
      (if (call $endsWith (local.get $at) (i32.const 475) (i32.const 11)) ;; "file_data"
        (then (call $flag (global.get $ADDRESS))))
      (if (call $endsWith (local.get $at) (i32.const 486) (i32.const 6)) ;; "data"
        (then (call $flag (global.get $ADDRESS))))
      (return)) ;; $t
      (if (call $endsWith (local.get $at) (i32.const 430) (i32.const 10)) ;; "document"
        (then (call $flag (global.get $MEDIA))))
      (return)) ;; $e
      (if (call $endsWith (local.get $at) (i32.const 448) (i32.const 7)) ;; "image"
        (then (call $flag (i32.or (global.get $MEDIA) (global.get $ADDRESS)))))
      (if (call $endsWith (local.get $at) (i32.const 469) (i32.const 6)) ;; "file"
        (then (call $flag (global.get $MEDIA))))
      (return)) ;; $o
      (if (call $endsWith (local.get $at) (i32.const 384) (i32.const 13)) ;; "input_audio"
        (then (call $flag (global.get $MEDIA))))
      (if (call $endsWith (local.get $at) (i32.const 455) (i32.const 7)) ;; "video"
        (then (call $flag (i32.or (global.get $MEDIA) (global.get $ADDRESS)))))
      (if (call $endsWith (local.get $at) (i32.const 462) (i32.const 7)) ;; "audio"
        (then (call $flag (i32.or (global.get $MEDIA) (global.get $ADDRESS)))))
      (return)) ;; $l
      (if (call $endsWith (local.get $at) (i32.const 512) (i32.const 15)) ;; "cache_control"
        (then (call $flag (global.get $CACHE_CONTROL))))
      (if (call $endsWith (local.get $at) (i32.const 544) (i32.const 4)) ;; url"
        (then
          (call $flag (global.get $ADDRESS))
          (if (call $endsWith (local.get $at) (i32.const 397) (i32.const 11)) ;; "image_url"
            (then (call $flag (global.get $MEDIA))))
          (if (call $endsWith (local.get $at) (i32.const 408) (i32.const 11)) ;; "video_url"
            (then (call $flag (global.get $MEDIA))))
          (if (call $endsWith (local.get $at) (i32.const 419) (i32.const 11)) ;; "audio_url"
            (then (call $flag (global.get $MEDIA))))))
      (if (call $endsWith (local.get $at) (i32.const 548) (i32.const 4)) ;; Url"
        (then (call $flag (global.get $ADDRESS))))
      (if (call $endsWith (local.get $at) (i32.const 552) (i32.const 4)) ;; URL"
        (then (call $flag (global.get $ADDRESS))))
      (return)) ;; $s
    (if (call $endsWith (local.get $at) (i32.const 560) (i32.const 5)) ;; urls"
      (then (call $flag (global.get $ADDRESS))))
    (if (call $endsWith (local.get $at) (i32.const 565) (i32.const 5)) ;; uris"
      (then (call $flag (global.get $ADDRESS))))
    (if (call $endsWith (local.get $at) (i32.const 531) (i32.const 7)) ;; "links"
      (then (call $flag (global.get $ADDRESS)))))

  ;; A name with an upper-case letter or a byte that is no ASCII. Names inside of schemas and
  ;; inputs do not count.
  (func $flagUnusualName (param $start i32) (param $end i32)
    (local $letters v128)
    (local $bits i32)
    (if (i32.or (global.get $cutDepth) (i32.and (global.get $features) (global.get $UNUSUAL_NAME)))
      (then (return)))
    (loop $sixteen
      (local.set $letters (v128.load align=1 (local.get $start)))
      (local.set $bits
        (i8x16.bitmask
          (v128.or
            (local.get $letters) ;; The highest bit: no ASCII.
            (i8x16.lt_u
              (i8x16.sub (local.get $letters) (i8x16.splat (i32.const 0x41)))
              (i8x16.splat (i32.const 26))))))
      ;; Bytes behind the name do not count.
      (if (i32.lt_u (i32.sub (local.get $end) (local.get $start)) (i32.const 16))
        (then
          (local.set $bits
            (i32.and
              (local.get $bits)
              (i32.sub
                (i32.shl (i32.const 1) (i32.sub (local.get $end) (local.get $start)))
                (i32.const 1))))))
      (if (local.get $bits) (then (call $flag (global.get $UNUSUAL_NAME)) (return)))
      (local.set $start (i32.add (local.get $start) (i32.const 16)))
      (br_if $sixteen (i32.lt_u (local.get $start) (local.get $end)))))

  ;; ---- Writing the skeleton ----

  ;; Copies the text that is neither copied nor cut out yet, up to this address.
  (func $copyUpTo (param $end i32)
    (local $length i32)
    (local.set $length (i32.sub (local.get $end) (global.get $copied)))
    (memory.copy (global.get $out) (global.get $copied) (local.get $length))
    (global.set $out (i32.add (global.get $out) (local.get $length)))
    (global.set $copied (local.get $end)))

  ;; The value that follows may be cut out: a member of an object in one of the two lists.
  (func $mayCut (result i32)
    (i32.and
      (i32.and (global.get $inList) (i32.eqz (global.get $cutDepth)))
      (global.get $isObject)))

  ;; The latest key names a text that may be long.
  (func $isTextMember (result i32)
    (if (i32.lt_u (global.get $depth) (i32.const 3)) (then (return (i32.const 0))))
    (i32.or
      (i32.or
        (i32.or (call $keyIs (i32.const 269) (i32.const 7)) ;; content
                (call $keyIs (i32.const 276) (i32.const 4))) ;; text
        (i32.or (call $keyIs (i32.const 280) (i32.const 9)) ;; arguments
                (call $keyIs (i32.const 289) (i32.const 11)))) ;; description
      (call $keyIs (i32.const 300) (i32.const 8)))) ;; thinking

  ;; The latest key names the schema of a tool or the input of a call.
  (func $isInnerMember (result i32)
    (if (i32.lt_u (global.get $depth) (i32.const 3)) (then (return (i32.const 0))))
    (if (call $keyIs (i32.const 330) (i32.const 12)) ;; input_schema
      (then (return (i32.const 1))))
    (if (call $keyIs (i32.const 320) (i32.const 10)) ;; parameters
      (then (return (i32.ge_u (global.get $depth) (i32.const 4)))))
    (if (call $keyIs (i32.const 342) (i32.const 5)) ;; input
      (then (return (i32.ge_u (global.get $depth) (i32.const 5)))))
    (i32.const 0))

  ;; ---- Passing over tokens ----

  (func $space (param $at i32) (result i32)
    (local $byte i32)
    (loop $bytes
      (local.set $byte (i32.load8_u (local.get $at)))
      (if (i32.gt_u (local.get $byte) (i32.const 0x20)) (then (return (local.get $at))))
      (if
        (i32.or
          (i32.or (i32.eq (local.get $byte) (i32.const 0x20)) (i32.eq (local.get $byte) (i32.const 0x0a)))
          (i32.or (i32.eq (local.get $byte) (i32.const 0x0d)) (i32.eq (local.get $byte) (i32.const 0x09))))
        (then
          (local.set $at (i32.add (local.get $at) (i32.const 1)))
          (br $bytes))))
    (local.get $at))

  (func $isDigit (param $byte i32) (result i32)
    (i32.lt_u (i32.sub (local.get $byte) (i32.const 0x30)) (i32.const 10)))

  (func $isHexDigit (param $byte i32) (result i32)
    (i32.or
      (call $isDigit (local.get $byte))
      (i32.lt_u
        (i32.sub (i32.or (local.get $byte) (i32.const 0x20)) (i32.const 0x61))
        (i32.const 6))))

  ;; Over the escape whose backslash is at this address.
  (func $escape (param $at i32) (result i32)
    (local $byte i32)
    (local.set $byte (i32.load8_u offset=1 (local.get $at)))
    (block $known
      (if (i32.eq (local.get $byte) (i32.const 0x22)) ;; "
        (then
          (call $flagSealed (i32.add (local.get $at) (i32.const 1)))
          (br $known)))
      (br_if $known (i32.eq (local.get $byte) (i32.const 0x6e))) ;; n
      (if (i32.eq (local.get $byte) (i32.const 0x5c)) ;; backslash
        (then
          ;; An escaped backslash before `u00` is flagged too: the flag means the bytes as written.
          (call $flagEscape (i32.add (local.get $at) (i32.const 1)))
          (br $known)))
      (if (i32.eq (local.get $byte) (i32.const 0x75)) ;; u
        (then
          (call $flagEscape (local.get $at))
          (return
            (select
              (i32.add (local.get $at) (i32.const 6))
              (i32.const 0)
              (i32.and
                (i32.and
                  (call $isHexDigit (i32.load8_u offset=2 (local.get $at)))
                  (call $isHexDigit (i32.load8_u offset=3 (local.get $at))))
                (i32.and
                  (call $isHexDigit (i32.load8_u offset=4 (local.get $at)))
                  (call $isHexDigit (i32.load8_u offset=5 (local.get $at)))))))))
      (br_if $known (i32.eq (local.get $byte) (i32.const 0x74))) ;; t
      (br_if $known (i32.eq (local.get $byte) (i32.const 0x72))) ;; r
      (br_if $known (i32.eq (local.get $byte) (i32.const 0x2f))) ;; /
      (br_if $known (i32.eq (local.get $byte) (i32.const 0x62))) ;; b
      (br_if $known (i32.eq (local.get $byte) (i32.const 0x66))) ;; f
      (return (i32.const 0)))
    (i32.add (local.get $at) (i32.const 2)))

  ;; From behind an opening quote to the closing one.
  (func $closingQuote (param $at i32) (param $allowEscapes i32) (result i32)
    (local $bytes v128)
    (local $bits i32)
    (local $byte i32)
    (loop $sixteen
      ;; A bit for each quote, backslash and control character.
      (local.set $bytes (v128.load align=1 (local.get $at)))
      (local.set $bits
        (i8x16.bitmask
          (v128.or
            (v128.or
              (i8x16.eq (local.get $bytes) (i8x16.splat (i32.const 0x22)))
              (i8x16.eq (local.get $bytes) (i8x16.splat (i32.const 0x5c))))
            (i8x16.lt_u (local.get $bytes) (i8x16.splat (i32.const 0x20))))))
      (if (i32.eqz (local.get $bits))
        (then
          (local.set $at (i32.add (local.get $at) (i32.const 16)))
          (br $sixteen)))
      (local.set $at (i32.add (local.get $at) (i32.ctz (local.get $bits))))
      (local.set $byte (i32.load8_u (local.get $at)))
      (if (i32.eq (local.get $byte) (i32.const 0x22)) (then (return (local.get $at))))
      (if (i32.and (i32.eq (local.get $byte) (i32.const 0x5c)) (local.get $allowEscapes))
        (then
          (local.set $at (call $escape (local.get $at)))
          (br_if $sixteen (local.get $at)))))
    (i32.const 0))

  ;; Over a string that is a value. A long text of the two lists becomes `"~"` in the skeleton:
  ;; V8 has a ready string for each single letter.
  (func $string (param $start i32) (result i32)
    (local $at i32)
    (call $flagSealed (local.get $start))
    (local.set $at (call $closingQuote (i32.add (local.get $start) (i32.const 1)) (i32.const 1)))
    (if (i32.eqz (local.get $at)) (then (return (i32.const 0))))
    (call $flagWord (local.get $at))
    (local.set $at (i32.add (local.get $at) (i32.const 1)))
    (if (i32.ge_u (i32.sub (local.get $at) (local.get $start)) (global.get $MIN_CUT_LENGTH))
      (then
        (if (call $mayCut)
          (then
            (if (call $isTextMember)
              (then
                (call $copyUpTo (local.get $start))
                (i32.store (global.get $out) (i32.const 0x20227e22)) ;; "~" and a byte to overwrite
                (global.set $out (i32.add (global.get $out) (i32.const 3)))
                (global.set $copied (local.get $at))))))))
    (local.get $at))

  ;; Over one digit or more.
  (func $digits (param $at i32) (result i32)
    (if (i32.eqz (call $isDigit (i32.load8_u (local.get $at)))) (then (return (i32.const 0))))
    (loop $more
      (local.set $at (i32.add (local.get $at) (i32.const 1)))
      (br_if $more (call $isDigit (i32.load8_u (local.get $at)))))
    (local.get $at))

  ;; Over `true`, `false`, `null` or a number that a double holds exactly enough.
  (func $scalar (param $start i32) (result i32)
    (local $at i32)
    (local.set $at (local.get $start))
    (if (call $equal (local.get $at) (i32.const 352) (i32.const 4)) ;; true
      (then (return (i32.add (local.get $at) (i32.const 4)))))
    (if (call $equal (local.get $at) (i32.const 356) (i32.const 5)) ;; false
      (then (return (i32.add (local.get $at) (i32.const 5)))))
    (if (call $equal (local.get $at) (i32.const 361) (i32.const 4)) ;; null
      (then (return (i32.add (local.get $at) (i32.const 4)))))
    (if (i32.eq (i32.load8_u (local.get $at)) (i32.const 0x2d)) ;; -
      (then (local.set $at (i32.add (local.get $at) (i32.const 1)))))
    (if (i32.eq (i32.load8_u (local.get $at)) (i32.const 0x30)) ;; 0 is followed by no digit
      (then (local.set $at (i32.add (local.get $at) (i32.const 1))))
      (else
        (local.set $at (call $digits (local.get $at)))
        (if (i32.eqz (local.get $at)) (then (return (i32.const 0))))))
    (if (i32.eq (i32.load8_u (local.get $at)) (i32.const 0x2e)) ;; .
      (then
        (local.set $at (call $digits (i32.add (local.get $at) (i32.const 1))))
        (if (i32.eqz (local.get $at)) (then (return (i32.const 0))))))
    (if (i32.eq (i32.or (i32.load8_u (local.get $at)) (i32.const 0x20)) (i32.const 0x65)) ;; e, E
      (then (return (i32.const 0))))
    (select
      (i32.const 0)
      (local.get $at)
      (i32.gt_u (i32.sub (local.get $at) (local.get $start)) (global.get $MAX_NUMBER_LENGTH))))

  ;; ---- Keys ----

  ;; Remembers the latest key; 0 where its object has it already, or has too many keys. A server
  ;; that takes the first of two equal keys would otherwise be asked for something that the
  ;; gateway did not see.
  (func $addKey (result i32)
    (local $other i32)
    (local $same i32)
    (local.set $other (global.get $firstKey))
    (block $unique
      (loop $keys
        (br_if $unique (i32.ge_u (local.get $other) (global.get $keysEnd)))
        (if (i32.eq (i32.load offset=4 (local.get $other)) (global.get $keyLength))
          (then
            (local.set $same (i32.const 0))
            (block $differ
              (loop $bytes
                (if (i32.ge_u (local.get $same) (global.get $keyLength))
                  (then (return (i32.const 0))))
                (br_if $differ
                  (i32.ne
                    (i32.load8_u (i32.add (global.get $keyStart) (local.get $same)))
                    (i32.load8_u (i32.add (i32.load (local.get $other)) (local.get $same)))))
                (local.set $same (i32.add (local.get $same) (i32.const 1)))
                (br $bytes)))
            (global.set $compared (i32.add (global.get $compared) (local.get $same)))))
        (local.set $other (i32.add (local.get $other) (i32.const 8)))
        (br $keys)))
    (if
      (i32.or
        (i32.ge_u
          (i32.sub (global.get $keysEnd) (global.get $firstKey))
          (i32.mul (global.get $MAX_KEYS) (i32.const 8)))
        (i32.gt_u (global.get $compared) (global.get $MAX_COMPARED)))
      (then (return (i32.const 0))))
    (i32.store (global.get $keysEnd) (global.get $keyStart))
    (i32.store offset=4 (global.get $keysEnd) (global.get $keyLength))
    (global.set $keysEnd (i32.add (global.get $keysEnd) (i32.const 8)))
    (i32.const 1))

  ;; Over a key and its colon to the value.
  (func $key (param $at i32) (result i32)
    (if (i32.ne (i32.load8_u (local.get $at)) (i32.const 0x22)) (then (return (i32.const 0))))
    (call $flagSealed (local.get $at))
    (global.set $keyStart (i32.add (local.get $at) (i32.const 1)))
    (local.set $at (call $closingQuote (global.get $keyStart) (i32.const 0)))
    (if (i32.eqz (local.get $at)) (then (return (i32.const 0))))
    (call $flagWord (local.get $at))
    (global.set $keyLength (i32.sub (local.get $at) (global.get $keyStart)))
    (if (i32.gt_u (global.get $keyLength) (global.get $MAX_KEY_LENGTH))
      (then (return (i32.const 0))))
    (call $flagUnusualName (global.get $keyStart) (local.get $at))
    (if (i32.eqz (call $addKey)) (then (return (i32.const 0))))
    (local.set $at (call $space (i32.add (local.get $at) (i32.const 1))))
    (if (i32.ne (i32.load8_u (local.get $at)) (i32.const 0x3a)) ;; :
      (then (return (i32.const 0))))
    (global.set $tokens (i32.add (global.get $tokens) (i32.const 1)))
    (local.set $at (call $space (i32.add (local.get $at) (i32.const 1))))
    (if (i32.eq (global.get $depth) (i32.const 1)) (then (call $beginMember (local.get $at))))
    (local.get $at))

  (func $memberAt (param $index i32) (result i32)
    (i32.add (global.get $MEMBERS) (i32.shl (local.get $index) (i32.const 4))))

  ;; Writes the row of a top-level member. $addKey has refused more members than there are rows.
  (func $beginMember (param $value i32)
    (local $row i32)
    (local.set $row (call $memberAt (global.get $members)))
    (i32.store (local.get $row) (i32.sub (global.get $keyStart) (global.get $TEXT)))
    (i32.store offset=4 (local.get $row) (global.get $keyLength))
    (i32.store offset=8 (local.get $row) (i32.sub (local.get $value) (global.get $TEXT)))
    (global.set $members (i32.add (global.get $members) (i32.const 1)))
    (global.set $inList
      (i32.or
        (call $keyIs (i32.const 256) (i32.const 8)) ;; messages
        (call $keyIs (i32.const 264) (i32.const 5))))) ;; tools

  (func $endMember (param $end i32)
    (if (global.get $members)
      (then
        (i32.store offset=12
          (call $memberAt (i32.sub (global.get $members) (i32.const 1)))
          (i32.sub (local.get $end) (global.get $TEXT))))))

  ;; ---- Containers ----

  (func $frame (result i32)
    (i32.add (global.get $FRAMES) (i32.shl (global.get $depth) (i32.const 3))))

  ;; Enters the container at this address; 0 where it is too deep.
  (func $open (param $at i32) (param $bracket i32) (result i32)
    (global.set $tokens (i32.add (global.get $tokens) (i32.const 1)))
    (if (i32.ge_u (global.get $depth) (global.get $MAX_DEPTH)) (then (return (i32.const 0))))
    (if (call $mayCut)
      (then
        (if (call $isInnerMember)
          (then
            (global.set $cutDepth (i32.add (global.get $depth) (i32.const 1)))
            (global.set $cutStart (local.get $at))))))
    (i32.store (call $frame) (global.get $firstKey))
    (i32.store offset=4 (call $frame) (global.get $isObject))
    (global.set $depth (i32.add (global.get $depth) (i32.const 1)))
    (global.set $firstKey (global.get $keysEnd))
    (global.set $isObject (i32.eq (local.get $bracket) (i32.const 0x7b))) ;; {
    (i32.const 1))

  ;; Leaves the container whose closing bracket is before this address.
  (func $close (param $behind i32) (param $bracket i32)
    (if (i32.eq (global.get $cutDepth) (global.get $depth))
      (then
        (call $copyUpTo (global.get $cutStart))
        ;; Both brackets; the codes of a pair are two apart.
        (i32.store16
          (global.get $out)
          (i32.or
            (i32.sub (local.get $bracket) (i32.const 2))
            (i32.shl (local.get $bracket) (i32.const 8))))
        (global.set $out (i32.add (global.get $out) (i32.const 2)))
        (global.set $copied (local.get $behind))
        (global.set $cutDepth (i32.const 0))))
    (global.set $depth (i32.sub (global.get $depth) (i32.const 1)))
    (global.set $keysEnd (global.get $firstKey))
    (global.set $firstKey (i32.load (call $frame)))
    (global.set $isObject (i32.load offset=4 (call $frame))))

  (func $reset
    (global.set $tokens (i32.const 0))
    (global.set $members (i32.const 0))
    (global.set $features (i32.const 0))
    (global.set $depth (i32.const 0))
    (global.set $isObject (i32.const 0))
    (global.set $firstKey (global.get $KEYS))
    (global.set $keysEnd (global.get $KEYS))
    (global.set $compared (i32.const 0))
    (global.set $inList (i32.const 0))
    (global.set $cutDepth (i32.const 0))
    (global.set $copied (global.get $TEXT))
    (global.set $out (global.get $skeleton)))

  ;; Walks over one value and everything in it. The first value must be an object.
  (func $value (param $at i32) (result i32)
    (local $byte i32)
    (local $end i32)
    (local $expectsKey i32)
    (loop $next
      (if (local.get $expectsKey)
        (then
          (local.set $at (call $key (local.get $at)))
          (if (i32.eqz (local.get $at)) (then (return (i32.const 0))))))
      (local.set $byte (i32.load8_u (local.get $at)))
      (block $ended
        (if (i32.eq (local.get $byte) (i32.const 0x22)) ;; "
          (then
            (local.set $at (call $string (local.get $at)))
            (br_if $ended (local.get $at))
            (return (i32.const 0))))
        (if
          (i32.or
            (i32.eq (local.get $byte) (i32.const 0x7b)) ;; {
            (i32.eq (local.get $byte) (i32.const 0x5b))) ;; [
          (then
            (if (i32.eqz (call $open (local.get $at) (local.get $byte)))
              (then (return (i32.const 0))))
            (local.set $at (call $space (i32.add (local.get $at) (i32.const 1))))
            ;; Empty: its closing bracket follows.
            (br_if $ended
              (i32.eq
                (i32.load8_u (local.get $at))
                (i32.add (local.get $byte) (i32.const 2))))
            (local.set $expectsKey (global.get $isObject))
            (br $next)))
        (local.set $at (call $scalar (local.get $at)))
        (if (i32.eqz (local.get $at)) (then (return (i32.const 0)))))
      ;; Behind a value: a comma and the next one, or the end of the container.
      (loop $behind
        (if (i32.eqz (global.get $depth)) (then (return (local.get $at))))
        (local.set $end (local.get $at))
        (local.set $at (call $space (local.get $at)))
        (local.set $byte (i32.load8_u (local.get $at)))
        (local.set $at (i32.add (local.get $at) (i32.const 1)))
        (if (i32.eq (global.get $depth) (i32.const 1)) (then (call $endMember (local.get $end))))
        (if (i32.eq (local.get $byte) (i32.const 0x2c)) ;; ,
          (then
            (global.set $tokens (i32.add (global.get $tokens) (i32.const 1)))
            (local.set $at (call $space (local.get $at)))
            (local.set $expectsKey (global.get $isObject))
            (br $next)))
        (if
          (i32.eq
            (local.get $byte)
            (select (i32.const 0x7d) (i32.const 0x5d) (global.get $isObject))) ;; } or ]
          (then
            (call $close (local.get $at) (local.get $byte))
            (br $behind)))))
    (i32.const 0))

  ;; From the length of the text to the length of its skeleton, or -1 for unsupported.
  (func (export "run") (param $length i32) (result i32)
    (local $at i32)
    (global.set $skeleton
      (i32.add (global.get $TEXT) (i32.add (local.get $length) (i32.const 32))))
    (call $reset)
    (local.set $at (call $space (global.get $TEXT)))
    (if (i32.ne (i32.load8_u (local.get $at)) (i32.const 0x7b)) ;; {
      (then (return (i32.const -1))))
    (i32.store
      (i32.const 8)
      (i32.sub (i32.add (local.get $at) (i32.const 1)) (global.get $TEXT)))
    (local.set $at (call $value (local.get $at)))
    (if (i32.eqz (local.get $at)) (then (return (i32.const -1))))
    (local.set $at (call $space (local.get $at)))
    (if (i32.ne (local.get $at) (i32.add (global.get $TEXT) (local.get $length)))
      (then (return (i32.const -1))))
    (call $copyUpTo (local.get $at))
    (i32.store (i32.const 0) (global.get $tokens))
    (i32.store (i32.const 4) (global.get $members))
    (i32.store (i32.const 12) (global.get $features))
    (i32.sub (global.get $out) (global.get $skeleton))))
