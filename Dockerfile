# SPDX-License-Identifier: Apache-2.0 OR MIT
# Three stages: `develop` has what a clone needs (.devcontainer uses it), `build` makes the wheel, and
# the last, which is the image, has the wheel with the programs that it measures.
#
#   docker build -t warifu .
#   docker run --rm warifu predict --device xeon-2-5-ghz-vm --link lte-m
#
# tests/containers runs these steps, and knows just these instructions, in Debian's root folders.

FROM rust:1.95-bookworm AS develop
ENV LC_ALL=C.UTF-8
RUN apt-get update -qq && \
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
        build-essential ca-certificates curl git libcoap3-dev libengine-pkcs11-openssl libssl-dev \
        nginx-light libcoap3-bin openssl iproute2 pkg-config procps python3 python3-venv sudo tcpdump && \
    rm -rf /var/lib/apt/lists/*

FROM develop AS build
# What is timed is built with optimisation, which takes longer: `--build-arg SETUP= --build-arg
# WHEEL=--dev` makes the development build.
ARG SETUP=--release
ARG WHEEL=
WORKDIR /src
COPY . .
RUN scripts/setup $SETUP && scripts/wheel $WHEEL --out /wheels

FROM debian:bookworm-slim
ENV LC_ALL=C.UTF-8
RUN apt-get update -qq && \
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
        ca-certificates libcoap3 libcoap3-bin libssl3 nginx-light openssl iproute2 procps python3 \
        python3-venv tcpdump && \
    rm -rf /var/lib/apt/lists/*
COPY --from=build /wheels/ /wheels/
# What the wheel requires in the locked versions, by their hashes; itself it was made a stage before.
RUN python3 -m venv /opt/warifu && \
    /opt/warifu/bin/pip install --quiet --no-cache-dir --require-hashes -r /wheels/requirements.lock && \
    /opt/warifu/bin/pip install --quiet --no-cache-dir --no-index --no-deps /wheels/*.whl && \
    rm -r /wheels
ENV PATH=/opt/warifu/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
WORKDIR /work
ENTRYPOINT ["warifu"]
CMD ["--help"]
